"""An example prints what the comment at its end says.

example.py PROGRAM SOURCE
"""

import re
import subprocess
import sys
from pathlib import Path

program, source = sys.argv[1:]
shown = re.search(r"/\* prints:\n(.*?)\*/\s*\Z", Path(source).read_text("utf-8"), re.DOTALL)
if shown is None:
    sys.exit(f"{source}: ends without a comment that says what it prints")
result = subprocess.run([program], capture_output=True, text=True)
if result.returncode != 0 or result.stdout != shown.group(1):
    sys.exit(f"{source}: ended with {result.returncode} and printed\n{result.stdout}{result.stderr}instead of\n{shown.group(1)}")
