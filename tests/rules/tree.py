"""The files of the project, and how a rule reports what it finds."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

CPP = {".h", ".cpp", ".cu", ".cuh"}


def files(root):
    """Every file that is, or would be, under version control, relative to the root."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"],
        capture_output=True, text=True)
    if listed.returncode == 0 and (root / ".git").exists():
        found = [Path(name) for name in listed.stdout.split("\0") if name]
    else:  # an unpacked release
        ignored = {"build", ".git", "__pycache__"}
        found = [path.relative_to(root) for path in root.rglob("*")]
        found = [path for path in found if not ignored & set(path.parts)]
    # A link to a folder, or a file that was removed and not yet committed, has no text to read.
    return sorted(path for path in found if (root / path).is_file())


def sources(root, suffixes=CPP):
    return [path for path in files(root) if path.suffix in suffixes]


def lines(root, path):
    """The lines of a text file, from 1; none for other files."""
    try:
        text = (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from enumerate(text.split("\n"), start=1)


def without_comments(text):
    """C++ with comments and the insides of literals blanked, line by line as before."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(pattern, blank, text, flags=re.DOTALL)


def arguments_from(entry):
    """The arguments of an entry of compile_commands.json, without -c, -o and the source itself, and without what only g++
    understands: clang runs some of them."""
    words = iter(shlex.split(entry["command"]))
    arguments = []
    for word in words:
        if word in ("-o", "-c", "-MF", "-MT", "-MQ"):
            next(words)
        elif word not in ("-MD", "-MMD", "-Wno-maybe-uninitialized") and not word.endswith("ccache"):
            arguments.append(word)
    return arguments


def compile_commands(build):
    """(source, arguments) of everything that the build compiles. The source of a room is a unit that CMake made."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        yield Path(entry["file"]), arguments_from(entry)


def arguments_of(build, target):
    """How the build compiles a target: compiler, definitions, include paths, warnings."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if f"/{target}.dir/" in entry.get("output", "") + entry["command"]:
            return arguments_from(entry)
    raise SystemExit(f"nothing of {target} is in compile_commands.json")


def library_arguments(build):
    """How the build compiles the library's plainest room."""
    return arguments_of(build, "posenc_forms")


def rooms(root, folders=("src", "cli")):
    """(target of the build, its sources): what the build compiles together. A source with code for every SIMD target
    comes alone."""
    found = {}
    for path in sources(root, {".cpp"}):
        if path.parts[0] not in folders or len(path.parts) < 3:
            continue
        target = f"posenc_{'cli_' if path.parts[0] == 'cli' else ''}{path.parts[1]}"
        if "cpu" in path.parts:
            found[path] = (f"{target}_cpu", [path])
        else:
            if "cuda" in path.parts:
                target = "posenc_cuda"
            found.setdefault(target, (target, []))[1].append(path)
    return list(found.values())


def as_one(root, group):
    """The text of a source that is all of these."""
    return "".join(f'#include "{root / path}"  // NOLINT(bugprone-suspicious-include)\n' for path in group)


class Report:
    """Collects `file:line: what is wrong`; a rule that looked at nothing fails too."""

    def __init__(self):
        self.problems = []
        self.seen = 0

    def look(self, count=1):
        self.seen += count

    def problem(self, path, line, text):
        self.problems.append(f"{path}:{line}: {text}")

    def finish(self):
        for problem in self.problems:
            print(problem)
        if not self.seen:
            print("nothing was looked at: the rule or its arguments are wrong")
        print(f"{self.seen} looked at, {len(self.problems)} wrong")
        sys.exit(0 if self.seen and not self.problems else 1)
