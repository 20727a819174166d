"""There is one place that throws, raise() in src/forms/error.cpp, and no try in the library but in the C API.

errors.py ROOT
"""

import re
import sys
from pathlib import Path

from tree import Report, sources, without_comments

ALLOWED = ("src/forms/error.cpp", "src/c_api/")
REFUSED = re.compile(r"\b(throw|try|catch|assert|abort|exit|_Exit|quick_exit|terminate)\b(?=\s*[({;\w])")


def check(root):
    report = Report()
    for path in sources(root):
        name = path.as_posix()
        if not name.startswith(("src/", "include/")) or name.startswith(ALLOWED):
            continue
        report.look()
        code = without_comments((root / path).read_text(encoding="utf-8"))
        for match in REFUSED.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            report.problem(path, line, f"{match.group(1)}: the library reports misuse through raise() alone")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
