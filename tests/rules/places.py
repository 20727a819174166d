"""The tree speaks of the project alone: no paths of somebody's machine, no hosts but well-known public ones.

places.py ROOT
"""

import re
import sys
from pathlib import Path

from tree import Report, files, lines

# Written in parts, so that this file does not hold what it refuses.
HOMES = "|".join(("home", "root", "work", "Users", "workspace", "mnt"))
PATH = re.compile(rf"(?<![\w.$)}}\]~/:-])/(?:{HOMES})(?:/|\b(?=[\s\"'`,;:)]|$))")
HOST = re.compile(r"\b(?:https?|ssh|git)://(?:[^@/\s]+@)?([A-Za-z0-9.-]+)")
PUBLIC = re.compile(
    r"(^|\.)(github\.com|githubusercontent\.com|arxiv\.org|apache\.org|debian\.org|keepachangelog\.com|semver\.org|"
    r"huggingface\.co|boost\.org|mpfr\.org|cmake\.org|numpy\.org|wikipedia\.org|doi\.org|aclanthology\.org|"
    r"openreview\.net|w3\.org|json-schema\.org|example\.(com|org)|localhost|127\.0\.0\.1)$")


def check(root):
    report = Report()
    for path in files(root):
        for line, text in lines(root, path):
            report.look()
            if found := PATH.search(text):
                report.problem(path, line, f"a path of one machine: {text[found.start():found.start() + 40]!r}")
            for host in HOST.findall(text):
                if not PUBLIC.search(host):
                    report.problem(path, line, f"the host {host} is not on the list of public ones in places.py")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
