"""In a script with `pipefail`, no reader stops before its writer is done: `grep -q`, `head`, `sed q`. The writer would be ended
by SIGPIPE, now and then, and the pipe would fail by chance. Keep the text in a variable, or let the reader read it all.

pipes.py ROOT
"""

import re
import sys
from pathlib import Path

from tree import Report, files, lines

EARLY = re.compile(r"(?<!\|)\|(?!\|)&?\s*(grep\s+-[a-zA-Z]*[qm]|head\b|sed\s+(-\S+\s+)*(\d+q|'[^']*[\d/$;{ ]q['};])|awk\s+'[^']*\bexit\b)")


def check(root):
    report = Report()
    for path in files(root):
        if path.suffix not in (".sh", ""):
            continue
        text = list(lines(root, path))
        if not any(line.startswith("set -") and "pipefail" in line for _, line in text):
            continue
        report.look()
        for number, line in text:
            match = EARLY.search(line)
            if match:
                reader = match.group(1).split()[0]
                report.problem(path, number, f"| {reader}: it stops reading early, so the pipe can fail by chance")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
