"""The library never prints and never ends the program: its objects reference nothing that does.

library_symbols.py LIBRARY.a
"""

import re
import subprocess
import sys
from pathlib import Path

from tree import Report

# std::terminate is not here: every noexcept function references it.
REFUSED = re.compile(
    r"^_*(v?[fd]?printf(_chk)?|puts|putchar|putc|fputs|fputc|fwrite|write|perror|syslog|"
    r"abort|[eE]xit|quick_exit|assert_fail|raise|kill)$"
    r"|^std::(cout|cerr|clog|wcout|wcerr|wclog)$|^fmt::.*\bv?print(ln)?\b|^hwy::Abort\b")


def undefined_symbols(library):
    """(object, symbol) of everything that the archive's objects need from elsewhere."""
    listing = subprocess.run(["nm", "--undefined-only", "--demangle", "--print-file-name", str(library)],
                             capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        match = re.match(r".*?:([^:]+\.o):\s+[Uwv] (.*)", line)
        if match:
            yield match.groups()


def check(library):
    report = Report()
    for member, symbol in undefined_symbols(library):
        report.look()
        if REFUSED.search(symbol):
            report.problem(member.removesuffix(".o"), 1, f"references {symbol}")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
