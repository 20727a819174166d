"""clang-tidy, with the short list of checks in .clang-tidy, finds nothing in the library and the program.

lint.py ROOT BUILD CLANG-TIDY
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Report, arguments_of, as_one, rooms


def check(root, build, clang_tidy):
    report = Report()

    # clang-tidy walks through every header again for each source, and headers are nearly all there is to see: a whole
    # room takes little longer than one source. Up to version 20 it walked through the headers of libraries, too, which
    # took twice as long.
    def tidy(room):
        target, group = room
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "room.cpp"
            source.write_text(as_one(root, group), encoding="utf-8")
            # The build's own warnings are the compilers' business, and g++ knows some that clang does not.
            return group, subprocess.run([clang_tidy, f"--config-file={root / '.clang-tidy'}", "--quiet", str(source),
                                          "--", *arguments_of(build, target)[1:], "-w"], capture_output=True, text=True)

    problems = set()  # what is in a header is found once for each source that includes it
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for group, result in pool.map(tidy, sorted(rooms(root), key=lambda room: -len(room[1]))):
            report.look(len(group))
            matches = re.findall(r"^(/.*?):(\d+):\d+: (?:warning|error): (.*)$", result.stdout, re.MULTILINE)
            problems.update(matches)
            if result.returncode and not matches:
                report.problem(group[0], 1, result.stdout + result.stderr)
    for path, line, text in sorted(problems):
        report.problem(os.path.relpath(path, root), line, text)
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]).finish()
