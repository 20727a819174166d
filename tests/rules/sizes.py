"""A file that no longer fits in one's head is refused: aim at 250 lines, think at 400, stop at 700.
So is a folder of the program with more than 40 files.

sizes.py ROOT
"""

import sys
from collections import Counter
from pathlib import Path

from tree import CPP, Report, sources

LIMIT = 700
FILES_IN_A_ROOM = 40


def check(root):
    report = Report()
    for path in sources(root, CPP | {".py", ".ts"}):
        report.look()
        count = len((root / path).read_text(encoding="utf-8").splitlines())
        if count > LIMIT:
            report.problem(path, LIMIT + 1, f"{count} lines; the limit is {LIMIT}")
    rooms = Counter(path.parent for path in sources(root) if path.parts[0] == "cli")
    for room, count in sorted(rooms.items()):
        if count > FILES_IN_A_ROOM:
            report.problem(room, 1, f"{count} files; the limit is {FILES_IN_A_ROOM}")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
