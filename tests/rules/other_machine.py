"""The library and the program compile without a warning for the other architecture too: x86-64 on arm64, and arm64
elsewhere. Only the compiler's front end is run; tests/oracle/every_machine.sh runs the code as well.

other_machine.py ROOT BUILD COMPILER FOLDER…    the rooms of these folders: src, cli
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Report, arguments_of, as_one, rooms


def system_folders(compiler):
    """Where this machine's compiler finds the headers of installed libraries, which are the same for every machine."""
    listing = subprocess.run([compiler, "-E", "-x", "c++", "-v", os.devnull], capture_output=True, text=True).stderr
    folders = listing.partition("#include <...> search starts here:")[2].partition("End of search list.")[0]
    return [folder for folder in folders.split() if folder.startswith("/usr/include") and "c++" not in folder]


def check(root, build, compiler, folders):
    report = Report()

    def compile_room(room):
        target, group = room
        here, *arguments = arguments_of(build, target)
        for folder in system_folders(here):
            arguments += ["-idirafter", folder]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "room.cpp"
            source.write_text(as_one(root, group), encoding="utf-8")
            return group, subprocess.run([compiler, *arguments, "-fsyntax-only", str(source)], capture_output=True,
                                         text=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for group, result in pool.map(compile_room, sorted(rooms(root, folders), key=lambda room: -len(room[1]))):
            report.look(len(group))
            if result.returncode:
                report.problem(group[0] if len(group) == 1 else group[0].parent, 1,
                               f"{Path(compiler).name}:\n{result.stderr}")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3], sys.argv[4:]).finish()
