"""clang-tidy, with the short list of checks in .clang-tidy, finds nothing in the library and the program.

lint.py ROOT BUILD CLANG-TIDY
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Report, compile_commands


def check(root, build, clang_tidy):
    report = Report()
    found = sorted({source for source, _ in compile_commands(build)
                    if source.is_relative_to(root / "src") or source.is_relative_to(root / "cli")})

    def tidy(source):
        # The build's own warnings are the compilers' business, and g++ knows some that clang does not.
        return source, subprocess.run([clang_tidy, "-p", str(build), "--quiet", "--extra-arg=-w", str(source)],
                                      capture_output=True, text=True)

    problems = set()  # what is in a header is found once for each source that includes it
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, result in pool.map(tidy, found):
            report.look()
            matches = re.findall(r"^(/.*?):(\d+):\d+: (?:warning|error): (.*)$", result.stdout, re.MULTILINE)
            problems.update(matches)
            if result.returncode and not matches:
                report.problem(source.relative_to(root), 1, result.stdout + result.stderr)
    for path, line, text in sorted(problems):
        report.problem(os.path.relpath(path, root), line, text)
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]).finish()
