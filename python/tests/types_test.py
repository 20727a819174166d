"""mypy in strict mode finds nothing in the package; the stub has the extension's names (values_test)."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: types are the same")
    sys.exit(77)

import posenc

if shutil.which("mypy") is None:
    print("mypy is not installed")
    sys.exit(77)
ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))
USE = """
import posenc
from posenc import Rope
rope: Rope = posenc.Rope(dims=8, layout="halves")
form = posenc.prepare(rope)
pairs: int | None = form.pairs
layer: posenc.PreparedLayer = posenc.layer("config.json", 3, part="decoder")
plan: posenc.AttentionPlan = posenc.plan_attention([], [], [], layer.form, cache_order="bshd")
"""
MISUSE = {'posenc.Rope(dims="eight")': "dims", 'posenc.Rope(layout="sideways")': "layout", 'posenc.prepare("rope", numerics="abacus")': "numerics",
          "posenc.no_such_name": "no_such_name", 'posenc.attention([], [], [], cache_order="thd")': "cache_order",
          'posenc.layer("config.json", "three")': "layer"}


def mypy(cache, *arguments):
    environment = {**os.environ, "MYPYPATH": str(Path(posenc.__file__).parents[1])}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(["mypy", "--config-file", ROOT / "python/pyproject.toml", "--cache-dir", cache, *arguments], capture_output=True,
                          text=True, env=environment, cwd=cache)


class Types(unittest.TestCase):
    def test_the_package_is_strict_and_users_are_checked(self):
        with tempfile.TemporaryDirectory() as cache:
            result = mypy(cache, "-p", "posenc")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            result = mypy(cache, "-c", USE + "\n".join(MISUSE))
        for number, (code, text) in enumerate(MISUSE.items(), start=USE.count("\n") + 1):
            self.assertRegex(result.stdout, f":{number}: error.*{text}", code)
        self.assertIn(f"Found {len(MISUSE)} errors", result.stdout)  # what is right passes


if __name__ == "__main__":
    unittest.main()
