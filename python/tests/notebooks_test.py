"""The notebooks are valid, run from the first cell to the last, and print the outputs that are stored in them."""

import contextlib
import importlib.util
import io
import json
import os
import sys
import unittest
from pathlib import Path

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: the same functions")
    sys.exit(77)
if importlib.util.find_spec("numpy") is None:
    print("needs numpy")
    sys.exit(77)

ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))


class Notebooks(unittest.TestCase):
    def test_every_notebook(self):
        paths = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
        self.assertGreaterEqual(len(paths), 3)
        for path in paths:
            notebook = json.loads(path.read_text("utf-8"))
            self.assertEqual((notebook["nbformat"], notebook["nbformat_minor"]), (4, 5))
            ids = [cell["id"] for cell in notebook["cells"]]
            self.assertEqual(len(ids), len(set(ids)))
            names, count = {}, 0
            for cell in notebook["cells"]:
                if cell["cell_type"] == "markdown":
                    continue
                count += 1
                self.assertEqual((cell["cell_type"], cell["execution_count"]), ("code", count))
                with self.subTest(f"{path.name}, cell {count}"), contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile("".join(cell["source"]), f"{path.name} {count}", "exec"), names)
                self.assertEqual(printed.getvalue(), "".join("".join(one["text"]) for one in cell["outputs"]), path.name)
            self.assertGreaterEqual(count, 2)


if __name__ == "__main__":
    unittest.main()
