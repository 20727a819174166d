"""No flag that makes results inexact or the machine's own: not in the build files, not in what is compiled, and the
code itself refuses -ffast-math.

exact_math.py ROOT BUILD
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tree import Report, compile_commands, files, library_arguments, lines

FLAG = re.compile(r"-Ofast|-ffast-math|-funsafe-math-optimizations|-fassociative-math|-ffp-contract=fast|"
                  r"-m(arch|cpu|tune)=native")
GUARDED = "numerics/fixed.h"


def is_build_file(path):
    return (path.name in ("CMakeLists.txt", "CMakePresets.json", "Makefile", "run", "test")
            or path.suffix in (".cmake", ".in", ".sh"))


def check(root, build):
    report = Report()
    for path in filter(is_build_file, files(root)):
        for number, line in lines(root, path):
            report.look()
            code = line.split("#", 1)[0]
            if "MATCHES" in code:  # the build's own refusal names the flags
                continue
            if found := FLAG.search(code):
                report.problem(path, number, f"{found.group()} makes results differ from machine to machine")
    for source, arguments in compile_commands(build):
        report.look()
        if found := FLAG.search(" ".join(arguments)):
            report.problem(source, 1, f"is compiled with {found.group()}")

    arguments = library_arguments(build) + ["-fsyntax-only", "-x", "c++", "-"]
    for flags, should_compile in (([], True), (["-ffast-math"], False)):
        result = subprocess.run(arguments + flags, input=f'#include "{GUARDED}"\n', text=True, capture_output=True)
        report.look()
        if (result.returncode == 0) != should_compile:
            what = f"does not compile:\n{result.stderr}" if should_compile else f"compiles with {flags[0]}"
            report.problem(f"src/{GUARDED}", 1, what)

    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(["cmake", "-S", str(root), "-B", folder, "-G", "Ninja",
                                 "-DCMAKE_CXX_FLAGS=-ffast-math"], capture_output=True, text=True)
        report.look()
        if result.returncode == 0:
            report.problem("CMakeLists.txt", 1, "configures with -ffast-math in CMAKE_CXX_FLAGS")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]), Path(sys.argv[2])).finish()
