"""Every header and every source compiles alone: each brings what it needs, and a header can be included first and in
any order. The build compiles the sources of a room together, where a missing include may not show.

alone.py ROOT BUILD
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Report, arguments_of, library_arguments, rooms, sources


def check(root, build):
    report = Report()
    headers = [path for path in sources(root, {".h"}) if path.parts[0] in ("include", "src", "cli")]
    targets = {path: target for target, group in rooms(root) for path in group}

    def compile_alone(path):
        if path in targets:
            command, text = arguments_of(build, targets[path]) + ["-fsyntax-only", str(root / path)], None
        else:
            name = path.as_posix() if path.parts[0] == "cli" else Path(*path.parts[1:]).as_posix()
            command = library_arguments(build) + ["-I", str(root), "-fsyntax-only", "-x", "c++", "-"]
            text = f'#include "{name}"\n#include "{name}"\n'
        return path, subprocess.run(command, input=text, text=True, capture_output=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in pool.map(compile_alone, headers + sorted(targets)):
            report.look()
            if result.returncode:
                how = "alone" if path in targets else "alone, or not twice"
                report.problem(path, 1, f"does not compile {how}:\n{result.stderr}")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]).resolve(), Path(sys.argv[2])).finish()
