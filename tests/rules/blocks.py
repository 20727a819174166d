"""Every block of code in a README, in CONTRIBUTING and in the guides is run by a test, or the words after its language, which
readers do not see, say which file runs it or why nothing does:

    ```sh run by tests/recipes/fetch_test.sh        that file exists, and names the page
    ```sh not run: needs a GPU

blocks.py ROOT

What is run needs no words: ```cpp (readme.py), ```python and the ```text block right below it (documents_test.py), `$ posenc` and, in
shell blocks, lines that begin with posenc (guide_test.py), ./run or cmake --install (readme.py), and ```js of the npm package
(npm_package_test.mjs). What a ```diff adds is in the file that the text above it names last.
"""

import re
import sys
from pathlib import Path

from tree import Report

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = ("sh", "bash", "shell")
RUN = r"posenc |\./run\b|cmake --install "


def pages(root):
    single = ("README.md", "CONTRIBUTING.md", "python/README.md", "benchmarks/README.md", "packaging/README.md")
    many = [path for folder in ("packaging", "docs", "docs/guide") for path in sorted((root / folder).glob("*.md" if "docs" in folder else "*/README.md"))]
    return [path for path in (*(root / name for name in single), *many) if path.exists()]


def fault(root, page, language, words, code, above):
    """What is wrong with a block that comes right below a block in the language `above`, or None."""
    if words.startswith("not run"):
        return None if re.fullmatch(r"not run: \w.{8,}", words) else "say why: ```sh not run: REASON"
    if words.startswith("run by "):
        runner = root / words.removeprefix("run by ")
        if not runner.is_file():
            return f"there is no {words.removeprefix('run by ')}"
        if page.name not in runner.read_text(encoding="utf-8"):
            return f"{words.removeprefix('run by ')} does not name {page.name}"
        return None
    if words:
        return f"'{words}': expected 'run by FILE' or 'not run: REASON'"
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
    if language in ("cpp", "c++", "python") or (language == "js" and page == root / "packaging/npm/README.md"):
        return None
    if language == "text" and above == "python":
        return None
    if language in SHELL:
        return next((f"no test runs '{line}'" for line in lines if not re.match(RUN, line)), None)
    if language in ("", "console") and code.startswith("$ posenc "):
        return None
    return "no test runs this block"


def diff_fault(root, before, code):
    """What is wrong with a ```diff after a text: a line that it adds is not in the file that this text names last."""
    named = [name for name in re.findall(r"`([\w./]+\.\w+)`", before) if (root / name).is_file()]
    if not named:
        return "no file is named above this diff"
    there = (root / named[-1]).read_text(encoding="utf-8").splitlines()
    return next((f"not in {named[-1]}: '{line[1:]}'" for line in code.splitlines() if line.startswith("+") and line[1:] not in there), None)


def indented_commands(text):
    """The lines of commands that are blocks by indentation alone, whose language nobody knows."""
    outside = FENCE.sub(lambda match: re.sub(r"[^\n]", "", match.group()), text)
    for number, line in enumerate(outside.split("\n"), start=1):
        if re.match(r" {4,}(\$ )?(posenc|\./run)\b", line):
            yield number


def check(root):
    report = Report()
    for page in pages(root):
        text, above, end = page.read_text(encoding="utf-8"), "", -1
        for match in FENCE.finditer(text):
            report.look()
            language, _, words = match.group(1).partition(" ")
            joined = above if match.start() == end + 1 else ""
            problem = (diff_fault(root, text[:match.start()], match.group(2)) if language == "diff" and not words else
                       fault(root, page, language, words.strip(), match.group(2), joined))
            if problem:
                report.problem(page.relative_to(root), text.count("\n", 0, match.start()) + 1, problem)
            above, end = language, match.end()
        for number in indented_commands(text):
            report.problem(page.relative_to(root), number, "no test runs an indented command: put it into a ```sh block")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
