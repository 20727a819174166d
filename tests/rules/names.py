"""Names that say nothing are refused: a file, folder or namespace is named for what is in it.

names.py ROOT
"""

import re
import sys
from pathlib import Path

from tree import Report, files, sources, without_comments

REFUSED = {"util", "utils", "common", "misc", "helper", "helpers", "manager"}


def words(name):
    """rotate_utils.h → rotate, utils, h; RotateHelper → rotate, helper."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def check(root):
    report = Report()
    for path in files(root):
        report.look()
        for part in path.parts:
            for word in REFUSED.intersection(words(part)):
                report.problem(path, 1, f'"{part}" holds the word "{word}": name it for what is in it')
    for path in sources(root):
        code = without_comments((root / path).read_text(encoding="utf-8"))
        for match in re.finditer(r"\bnamespace\s+([\w:]+)", code):
            for word in REFUSED.intersection(words(match.group(1))):
                line = code.count("\n", 0, match.start()) + 1
                report.problem(path, line, f'namespace {match.group(1)} holds the word "{word}"')
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
