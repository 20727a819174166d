"""The lines of numpy of each worked example run as they are, and compute the numbers of its matrices."""

import contextlib
import io
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))
STORIES = sorted((ROOT / "content" / "stories").glob("*.json"))
if "POSENC" not in os.environ or os.environ.get("POSENC_SANITIZE"):
    print("needs the program, without a sanitizer")
    sys.exit(77)
try:
    import numpy as np
except ImportError:
    print("needs numpy")
    sys.exit(77)


class Stories(unittest.TestCase):
    def test_every_story_in_numpy(self):
        compared = 0
        for path in STORIES:
            content = json.loads(path.read_text("utf-8"))
            names, printed = {}, io.StringIO()
            with self.subTest(path.stem):
                with contextlib.redirect_stdout(printed):
                    exec("\n".join(content["python"]), names)
                self.assertTrue(printed.getvalue().strip(), "it prints its result")
                told = json.loads(subprocess.check_output([os.environ["POSENC"], "explain", path.stem, "--json"]))
                matrices = {block["name"]: block["values"] for step in told["steps"] for block in step["blocks"]
                            if block["kind"] == "matrix"}
                for matrix, expression in content.get("gives", {}).items():
                    got = np.asarray(eval(expression, names), float)
                    np.testing.assert_allclose(got, np.asarray(matrices[matrix], float), rtol=0, atol=1e-9, err_msg=matrix)
                    compared += 1
        self.assertGreaterEqual(compared, len(STORIES))


if __name__ == "__main__":
    unittest.main()
