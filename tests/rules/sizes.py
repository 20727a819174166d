"""A file or a function that no longer fits in one's head is refused: aim at 250 lines for a file and 60 for a function; the
limits are 450 and 100, and 700 for a file of tests. So is a folder of the program with more than 40 files.

sizes.py ROOT
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

from tree import CPP, Report, sources, without_comments

LIMIT, TEST_LIMIT, FUNCTION_LIMIT = 450, 700, 100
ALL, OF_THE_PRODUCT = CPP | {".py", ".ts"}, {".c", ".mjs", ".css", ".cmake", ".sh"}
FILES_IN_A_ROOM = 40


def is_test(path):
    return "tests" in path.parts


def functions_in_cpp(text):
    """(name, first line, lines) of every function that is not inside another one."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda found: re.sub(r"[^\n]", " ", found.group()),
                  without_comments(text), flags=re.MULTILINE)
    open_blocks, head, line = [], "", 1  # a block: its name if it is a function, and its first line
    for character in code:
        if character == "{":
            start = line - head.lstrip().count("\n")
            named = re.search(r"(?<!\w)((?!__)[\w~]+|operator\W+)\s*\(", head)
            is_body = named and not re.search(r"(^|\W)(namespace|enum)\W|=\s*$", head) and not any(
                name for name, _ in open_blocks)
            open_blocks.append((named.group(1) if is_body else None, start))
        elif character == "}" and open_blocks:
            name, start = open_blocks.pop()
            if name:
                yield name, start, line - start + 1
        head = "" if character in "{};" else head + character
        line += character == "\n"


def functions_in_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def check(root):
    report = Report()
    for path in sources(root, ALL | OF_THE_PRODUCT):
        if is_test(path) and path.suffix in OF_THE_PRODUCT:
            continue
        report.look()
        text = (root / path).read_text(encoding="utf-8")
        count, limit = len(text.splitlines()), TEST_LIMIT if is_test(path) else LIMIT
        if count > limit:
            report.problem(path, limit + 1, f"{count} lines; the limit is {limit}")
        functions = functions_in_python if path.suffix == ".py" else functions_in_cpp
        for name, line, length in functions(text) if path.suffix in CPP | {".py", ".c", ".ts"} and not is_test(path) else ():
            if length > FUNCTION_LIMIT:
                report.problem(path, line, f"{name} has {length} lines; the limit of a function is {FUNCTION_LIMIT}")
    rooms = Counter(path.parent for path in sources(root) if path.parts[0] == "cli")
    for room, count in sorted(rooms.items()):
        if count > FILES_IN_A_ROOM:
            report.problem(room, 1, f"{count} files; the limit is {FILES_IN_A_ROOM}")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
