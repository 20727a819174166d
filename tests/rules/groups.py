"""Prints sources in groups that can be compiled as one, a group in a line with | between, for cmake/groups.cmake.

groups.py ROOT SOURCE…
"""

import os
import sys
from pathlib import Path

from tree import batches

if __name__ == "__main__":
    root = Path(sys.argv[1])
    paths = [Path(os.path.relpath(source, root)) for source in sys.argv[2:]]
    for group in batches(root, paths, most=8):
        if len(group) > 1:
            print(*(root / path for path in group), sep="|")
