"""libposenc_c exports the functions of its header, the list in the tree, and nothing else.

exports.py LIBRARY LIST HEADER
"""

import re
import subprocess
import sys
from pathlib import Path

library, listed, header = sys.argv[1:]
symbols = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library], capture_output=True, text=True,
                         check=True).stdout
exported = {line.split()[0].partition("@")[0] for line in symbols.splitlines()}
wanted = set(Path(listed).read_text("utf-8").split())
declared = set(re.findall(r"POSENC_API [\w\s*]+?\b(posenc_\w+)\(", Path(header).read_text("utf-8")))
problems = [f"{name}: exported, but not in {listed}" for name in sorted(exported - wanted)]
problems += [f"{name}: in {listed}, but not exported" for name in sorted(wanted - exported)]
problems += [f"{name}: exported, but not declared in {header}" for name in sorted(exported - declared)]
problems += [f"{name}: declared in {header}, but not exported" for name in sorted(declared - exported)]
print("\n".join(problems) or f"{len(exported)} names")
sys.exit(1 if problems or not exported else 0)
