"""Every header compiles alone, so it can be included first and in any order.

headers.py ROOT BUILD

A header that some source of the build includes before anything else compiles alone there; only the others are
compiled here. That build must be up to date, as ./test sees to.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Report, compile_commands, library_arguments, precompiles, sources

ONCE = re.compile(r"^#pragma once$", re.MULTILINE)
DIRECTIVE = re.compile(r'^#\s*(?:include "(.*)")?', re.MULTILINE)


def first_includes(root, build):
    """The headers that sources of the build begin with. With a precompiled header before them, they show nothing."""
    if precompiles(build):
        return set()
    first = (DIRECTIVE.search(source.read_text(encoding="utf-8"))
             for source, _ in compile_commands(build) if source.is_relative_to(root) and source.exists())
    return {directive[1] for directive in first if directive and directive[1]}


def check(root, build):
    report = Report()
    arguments = library_arguments(root, build) + ["-fsyntax-only", "-x", "c++", "-"]
    headers = [path for path in sources(root, {".h"}) if path.parts[0] in ("include", "src")]
    first = first_includes(root, build)

    def shown(path):
        name = Path(*path.parts[1:]).as_posix()
        return name in first and ONCE.search((root / path).read_text(encoding="utf-8"))

    def compile_alone(path):
        if shown(path):
            return path, None
        name = Path(*path.parts[1:]).as_posix()
        return path, subprocess.run(arguments, input=f'#include "{name}"\n#include "{name}"\n', text=True,
                                    capture_output=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in pool.map(compile_alone, headers):
            report.look()
            if result and result.returncode:
                report.problem(path, 1, "does not compile alone, or not twice:\n" + result.stderr)
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]), Path(sys.argv[2])).finish()
