"""Every C++ source looks as clang-format 14 writes it. `clang-format-14 -i FILE` mends it.

formatting.py ROOT CLANG-FORMAT
"""

import re
import subprocess
import sys
from pathlib import Path

from tree import Report, sources


def check(root, clang_format):
    report = Report()
    found = [str(path) for path in sources(root)]
    report.look(len(found))
    result = subprocess.run([clang_format, "--dry-run", "-Werror"] + found, cwd=root, capture_output=True, text=True)
    first_of_file = {}
    for match in re.finditer(r"^(.*?):(\d+):\d+: error: (.*)$", result.stderr, re.MULTILINE):
        first_of_file.setdefault(match.group(1), match)
    for match in first_of_file.values():
        report.problem(match.group(1), match.group(2), f"{match.group(3)}; run {clang_format} -i {match.group(1)}")
    if result.returncode and not first_of_file:
        report.problem(".clang-format", 1, result.stderr)
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]), sys.argv[2]).finish()
