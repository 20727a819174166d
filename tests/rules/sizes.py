"""A file that no longer fits in one's head is refused: aim at 250 lines, think at 400, stop at 700.

sizes.py ROOT
"""

import sys
from pathlib import Path

from tree import CPP, Report, sources

LIMIT = 700


def check(root):
    report = Report()
    for path in sources(root, CPP | {".py", ".ts"}):
        report.look()
        count = len((root / path).read_text(encoding="utf-8").splitlines())
        if count > LIMIT:
            report.problem(path, LIMIT + 1, f"{count} lines; the limit is {LIMIT}")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
