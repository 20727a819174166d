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

from tree import Report, as_one, batches, compile_commands


def groups_of(root, build):
    """(sources, arguments): the sources of a group are compiled alike, but for how well they are optimised."""
    alike = {}
    for source, arguments in compile_commands(build):
        if source.is_relative_to(root / "src") or source.is_relative_to(root / "cli"):
            key = tuple(word for word in arguments[1:] if not re.fullmatch(r"-O\w*", word))
            alike.setdefault(key, set()).add(source.relative_to(root))
    return [(group, list(arguments)) for arguments, found in alike.items()
            for group in batches(root, sorted(found), most=24)]


def check(root, build, clang_tidy):
    report = Report()

    def tidy(source, arguments):
        # The build's own warnings are the compilers' business, and g++ knows some that clang does not.
        return subprocess.run([clang_tidy, f"--config-file={root / '.clang-tidy'}", "--quiet", str(source), "--",
                               *arguments, "-w"], capture_output=True, text=True)

    # clang-tidy walks through every header again for each source, and headers are nearly all there is to see: two
    # dozen sources at once take little longer than one.
    def tidy_group(job):
        group, arguments = job
        if len(group) > 1:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / "group.cpp"
                source.write_text(as_one(root, group), encoding="utf-8")
                result = tidy(source, arguments)
            if "[clang-diagnostic-error" not in result.stdout:
                return [(group, result)]
        return [([path], tidy(root / path, arguments)) for path in group]

    problems = set()  # what is in a header is found once for each source that includes it
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(tidy_group, groups_of(root, build)):
            for group, result in results:
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
