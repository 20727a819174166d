"""The snippets of the guide and of the READMEs run, those with a ```text block right below print it, and examples print
what their last comment says. A … stands for anything."""

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
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
    """(code, what it prints or "") of every snippet of a page."""
    return re.findall(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```)?", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def write_files():
    """What the pages talk about, in the current folder: see tests/cli/guide_files.py."""
    import numpy as np

    import posenc
    from guide_files import CONFIGS, SHAPE, before

    for name, text in CONFIGS.items():
        Path(name).write_text(text, "utf-8")
    queries = np.array(before(), np.float32).reshape(SHAPE)
    np.save("before.npy", queries)
    ported = posenc.Rope(dims=SHAPE[2], base=5e5, layout="interleaved", scaling=posenc.Llama3Scaling(factor=8))
    np.save("after.npy", posenc.rotate(queries, posenc.prepare(ported), first=1))


class Documents(unittest.TestCase):
    def test_every_page(self):
        sys.path.insert(0, str(ROOT / "tests/cli"))
        started_in, ran = Path.cwd(), {}
        self.addCleanup(os.chdir, started_in)
        for path in (ROOT / "README.md", ROOT / "python/README.md", *sorted((ROOT / "docs/guide").glob("*.md"))):
            found = snippets(path)
            if not found:
                continue
            names = {}
            with tempfile.TemporaryDirectory() as folder, self.subTest(path.name):
                os.chdir(folder)
                write_files()
                for code, shown in found:
                    if "import torch" in code and not is_there("torch"):
                        continue
                    with contextlib.redirect_stdout(io.StringIO()) as printed:
                        exec(compile(code, str(path), "exec"), names)
                    if shown:
                        self.assertRegex(printed.getvalue(), "^" + ".*".join(map(re.escape, shown.split("…"))) + "$")
                os.chdir(started_in)
            ran[path.relative_to(ROOT).as_posix()] = len(found)
        for page in ("README.md", "python/README.md", "docs/guide/port.md", "docs/guide/quick-start.md"):
            self.assertGreaterEqual(ran[page], 1)
        self.assertGreaterEqual(ran["docs/guide/python.md"], 4)

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
