"""Every header compiles alone, so it can be included first and in any order.

headers.py ROOT BUILD
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Report, library_arguments, sources

def check(root, build):
    report = Report()
    arguments = library_arguments(build) + ["-fsyntax-only", "-x", "c++", "-"]
    headers = [path for path in sources(root, {".h"}) if path.parts[0] in ("include", "src")]

    def compile_alone(path):
        name = Path(*path.parts[1:]).as_posix()
        return path, subprocess.run(arguments, input=f'#include "{name}"\n#include "{name}"\n', text=True,
                                    capture_output=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in pool.map(compile_alone, headers):
            report.look()
            if result.returncode:
                report.problem(path, 1, "does not compile alone, or not twice:\n" + result.stderr)
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]), Path(sys.argv[2])).finish()
