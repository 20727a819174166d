"""What the README shows is true: its C++ compiles, links and runs, its ./run commands run and print what is pasted.

readme.py snippets ROOT BUILD LIBRARY.a     every ```cpp block, those of docs/guide too
readme.py commands ROOT PRESET              every ./run and cmake --install line of ```sh and ```console blocks, by the program of
                                            that preset, those of docs/guide too; and the length

A pasted output is the rest of a ```console block after a `$ ` line, or the ```text block right below a ```sh block.
In it, a line that is only … stands for any lines, and … within a line for any characters.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tree import Report, library_arguments

LONGEST = 90  # a figure, three short paths, and how to install it
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block:
    def __init__(self, text, match):
        self.language = match.group(1)
        self.is_marked = "run" in match.group(2)  # by whom, or why not
        self.text = match.group(3)
        self.line = text.count("\n", 0, match.start(3)) + 1
        self.start, self.end = match.span()


def blocks(text):
    return [Block(text, match) for match in FENCE.finditer(text)]


def is_program(block):
    return re.search(r"\bint main\s*\(", block.text) is not None


def directives(block):
    """What a snippet says before any function can: its includes."""
    return [line for line in block.text.splitlines() if re.match(r"\s*#|\s*using namespace\b", line)]


def program_of(found):
    """Snippets, as (page, block), as one program, which runs that of its argument; line numbers stay those of the
    pages. All bring the same directives."""
    page, block = found[0]
    if is_program(block):
        return f'#line {block.line} "{page}"\n{block.text}'
    text = "\n".join(directives(block)) + "\n"
    for header in ("cmath", "cstdint", "cstdio", "cstdlib", "vector", "posenc/posenc.h"):
        text += f"#include <{header}>\n"
    text += "using namespace posenc;\n"
    for number, (page, block) in enumerate(found):
        body = "\n".join("" if line in directives(block) else line for line in block.text.splitlines())
        text += f'int snippet_{number}() {{\n#line {block.line} "{page}"\n{body}\nreturn 0;\n}}\n'
    calls = ", ".join(f"snippet_{number}" for number in range(len(found)))
    return text + (f"int main(int, char** words) {{\nint (*const all[])() = {{{calls}}};\n"
                   "return all[std::atoi(words[1])]();\n}\n")


def pages(root):
    return [root / "README.md", *sorted((root / "docs" / "guide").glob("*.md"))]


def snippets(root):
    """(page, block) of every C++ snippet of the README and the guide."""
    for path in pages(root):
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.language in ("cpp", "c++"):
                yield path.relative_to(root).as_posix(), block


def together(found):
    """Snippets in groups that can be one program, since most of the time to compile one goes into posenc.h."""
    groups = {}
    for number, (page, block) in enumerate(found):
        key = number if is_program(block) else tuple(directives(block))
        groups.setdefault(key, []).append((page, block))
    return list(groups.values())


def check_snippets(root, build, library):
    report = Report()
    # The library's own warnings are not asked of six lines for a newcomer.
    arguments = [word for word in library_arguments(build) if not word.startswith(("-W", "-I"))]
    arguments += ["-O0", "-g0", "-I", str(root / "include")]
    needs = subprocess.run(["pkg-config", "--libs", "fmt", "libhwy", "tbb", "zlib"], capture_output=True, text=True,
                           check=True).stdout.split()

    def check_group(found):
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder) / "snippet.cpp", Path(folder) / "snippet"
            source.write_text(program_of(found), encoding="utf-8")
            lessons = sorted(str(one) for one in Path(library).parent.glob("libposenc_lessons.*"))
            made = subprocess.run(arguments + [str(source), *lessons, str(library), "-o", str(program)] + needs,
                                  capture_output=True, text=True)
            if made.returncode and len(found) > 1:  # which one?
                for one in found:
                    check_group([one])
                return
            for number, (page, block) in enumerate(found):
                report.look()
                if made.returncode:
                    report.problem(page, block.line, "the snippet does not compile:\n" + made.stderr)
                    continue
                ran = subprocess.run([str(program), str(number)], cwd=folder, capture_output=True, text=True,
                                     timeout=60)
                if ran.returncode:
                    report.problem(page, block.line, f"the snippet ends with {ran.returncode}:\n{ran.stderr}")

    for group in together(list(snippets(root))):
        check_group(group)
    return report


def commands(text):
    """(line, command, pasted output or None) of every ./run and cmake --install of a page. blocks.py says what may be marked."""
    found = blocks(text)
    for block, below in zip(found, found[1:] + [None]):
        if block.language not in ("sh", "bash", "shell", "console") or block.is_marked:
            continue
        runs, pasted = [], None
        for number, line in enumerate(block.text.splitlines(), start=block.line):
            prompt = line.startswith("$ ")
            command = line.removeprefix("$ ")
            if prompt or block.language != "console":
                pasted = [] if prompt else None
                if re.match(r"\./run\b|cmake --install\b", command):
                    runs.append((number, re.sub(r"\s+# .*$", "", command), pasted))
            elif pasted is not None:
                pasted.append(line)
        if runs and below and below.language in ("", "text") and not text[block.end:below.start].strip():
            number, command, _ = runs[-1]
            runs[-1] = number, command, below.text.splitlines()
        for number, command, pasted in runs:
            yield number, command, pasted or None


def matches(expected, printed):
    """Whether the printed text is the pasted one; … stands for what may differ."""
    parts = []
    for line in expected:
        if line.strip() in ("…", "..."):
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(map(re.escape, line.rstrip().split("…"))) + r"[ \t]*\n")
    return re.fullmatch("".join(parts) + r"\n*", printed if printed.endswith("\n") else printed + "\n") is not None


def check_commands(root, preset):
    report = Report()
    length = len((root / "README.md").read_text(encoding="utf-8").splitlines())
    if length > LONGEST:
        report.problem("README.md", LONGEST + 1, f"{length} lines; it is to stay at {LONGEST}")
    with tempfile.TemporaryDirectory() as folder:
        # Files that commands write stay out of the tree, and ~ is here.
        here = Path(folder)
        for name in ("run", "examples"):
            (here / name).symlink_to(root / name)
        (here / "build").mkdir()
        (here / "build/release").symlink_to(root / "build" / preset)
        environment = os.environ | {"NO_COLOR": "1", "POSENC_PRESET": preset, "HOME": folder}
        for page in pages(root):
            name = page.relative_to(root)
            for line, command, expected in commands(page.read_text(encoding="utf-8")):
                report.look()
                ran = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True,
                                     stdin=subprocess.DEVNULL, env=environment)
                if ran.returncode:
                    report.problem(name, line, f"{command}: ends with {ran.returncode}:\n{ran.stderr[-4000:]}")
                elif expected is not None and not matches(expected, ran.stdout):
                    report.problem(name, line, f"{command}: prints other than is pasted:\n{ran.stdout}")
    return report


if __name__ == "__main__":
    if sys.argv[1] == "snippets":
        check_snippets(*map(Path, sys.argv[2:5])).finish()
    else:
        check_commands(Path(sys.argv[2]), sys.argv[3]).finish()
