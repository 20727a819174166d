"""The guide's snippets run, and examples print what their last comment says."""

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: the same snippets")
    sys.exit(77)

ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))
NEEDS = {"05_train_t5_bias": "torch", "06_transformers": "transformers", "08_long_context": "torch"}


def is_there(module):
    return importlib.util.find_spec(module) is not None


def snippets(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)


class Documents(unittest.TestCase):
    def test_the_guide(self):
        names, ran = {}, 0
        for code in snippets(ROOT / "docs/guide/python.md"):
            if "import torch" in code and not is_there("torch"):
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, "docs/guide/python.md", "exec"), names)
            ran += 1
        self.assertGreaterEqual(ran, 4)

    def test_readmes(self):
        for path in (ROOT / "README.md", ROOT / "python/README.md"):
            found = snippets(path)
            self.assertTrue(found, path)
            for code in found:
                exec(compile(code, str(path), "exec"), {})

    def test_examples(self):
        paths = sorted((ROOT / "examples/python").glob("*.py"))
        self.assertGreaterEqual(len(paths), 6)
        for path in paths:
            if path.stem in NEEDS and not is_there(NEEDS[path.stem]):
                print(f"{path.name}: {NEEDS[path.stem]} is not installed")
                continue
            with self.subTest(path.name):
                shown = path.read_text("utf-8").partition("# prints:\n")[2]
                wanted = "".join(line[2:].rstrip() + "\n" for line in shown.splitlines())
                result = subprocess.run([sys.executable, "-B", path], capture_output=True, text=True)
                printed = "".join(line.rstrip() + "\n" for line in result.stdout.splitlines())
                self.assertEqual(printed, wanted, result.stderr)


if __name__ == "__main__":
    unittest.main()
