"""sdist → wheel → a fresh environment: what `pip install ./python` (README.md, docs/guide/python.md) makes runs without anything else."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(os.environ.get("POSENC_ROOT", Path(__file__).parents[2]))
LIBRARY = Path(os.environ.get("POSENC_C_LIBRARY", ""))  # libposenc_c of this build
MISSING = [name for name in ("setuptools", "wheel", "pip") if importlib.util.find_spec(name) is None]
MISSING += [] if shutil.which("patchelf") else ["patchelf"]
if os.environ.get("POSENC_SANITIZE") or MISSING or not LIBRARY.is_file():
    print(f"no wheel is made here: {', '.join(MISSING) or 'a sanitizer, or no library'}")
    sys.exit(77)
# What may be needed from outside: libraries that every Linux has. Versions are this machine's: wheels for older systems are made by
# packaging/wheel/build.sh, and checked there by check.py.
EVERYWHERE = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z)\.so\.\d|ld-linux.*)$")
sys.path.insert(0, str(ROOT / "packaging/wheel"))
from check import PYTHON_39  # noqa: E402
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")}


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **{"env": ENVIRONMENT, **options})
    if result.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


class Packaging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        folder = cls.folder = Path(cls.keep.name)
        (folder / "tree/content").mkdir(parents=True)
        for part in ("CMakeLists.txt", "LICENSE", "README.md", "cmake", "include", "src", "content/models", "content/lab"):
            (folder / "tree" / part).symlink_to(ROOT / part)
        shutil.copytree(ROOT / "python", folder / "tree/python", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "dist"))
        run(sys.executable, "setup.py", "-q", "sdist", "-d", folder / "dist", cwd=folder / "tree/python")
        cls.source = next((folder / "dist").glob("posenc-*.tar.gz"))
        with tarfile.open(cls.source) as archive:
            archive.extractall(folder / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        prefix = folder / "prefix"
        (prefix / "lib").mkdir(parents=True)
        shutil.copyfile(LIBRARY.resolve(), prefix / "lib" / LIBRARY.resolve().name)
        shutil.copytree(ROOT / "include", prefix / "include")
        run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--no-deps", "-w", folder / "wheels",
            next((folder / "unpacked").iterdir()), env={**ENVIRONMENT, "POSENC_PREFIX": str(prefix)})
        cls.wheel = next((folder / "wheels").glob("*.whl"))

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def test_the_sdist_has_what_a_build_needs(self):
        with tarfile.open(self.source) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        for name in ("native/CMakeLists.txt", "native/include/posenc/posenc_c.h", "native/src/c_api/posenc_c.map",
                     "native/content/models/classes.json", "native/content/lab/claims.json", "posenc/lab/__main__.py", "src/_posenc.c", "src/borrow.h", "src/generate_attention.py",
                     "src/generate_schemes.py", "posenc/__init__.py", "posenc/py.typed", "posenc/_posenc.pyi"):
            self.assertIn(name, names)

    def test_the_wheel(self):
        self.assertRegex(self.wheel.name, r"posenc-\d+\.\d+\.\d+-cp39-abi3-linux_\w+\.whl")
        # With the GPU's kernels, packed; and a build for tests has every SIMD target.
        self.assertLess(self.wheel.stat().st_size, 3_000_000)
        with zipfile.ZipFile(self.wheel) as archive:
            names = set(archive.namelist())
            metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
            archive.extractall(self.folder / "contents")
        for name in ("posenc/_posenc.abi3.so", "posenc/libs/libposenc_c.so.0", "posenc/keywords.py", "posenc/schemes.py", "posenc/py.typed", "posenc/_posenc.pyi", "posenc/lab/__main__.py",
                     "posenc/lab/claims.json"):
            self.assertIn(name, names)
        self.assertEqual([line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line], [])

    def test_its_libraries_need_nothing_that_is_not_there(self):
        self.test_the_wheel()
        libraries = sorted((self.folder / "contents/posenc").rglob("*.so*"))
        inside = {path.name for path in libraries}
        for path in libraries:
            heads = run("objdump", "-p", path)
            for needed in re.findall(r"NEEDED\s+(\S+)", heads):
                self.assertTrue(needed in inside or EVERYWHERE.match(needed), f"{path.name} needs {needed}")
            if path.name.startswith(("_posenc", "libposenc_c")):
                self.assertIn("$ORIGIN", re.search(r"R(?:UN)?PATH\s+(\S+)", heads).group(1))
            for name in re.findall(r"\*UND\*.*\s(_?Py\w+)$", run("objdump", "-T", path), re.MULTILINE):
                self.assertIn(name, PYTHON_39, f"{path.name}: not known to be in Python 3.9 (packaging/wheel/check.py)")

    def test_every_interpreter_imports_it(self):
        """One file for Python 3.9 and all that come later."""
        found = {shutil.which(f"python3.{minor}") for minor in range(9, 20)} - {None}
        # pyenv has a name for every version that it knows, and runs only those that are switched on
        found = {python for python in found if subprocess.run([python, "-c", ""], capture_output=True).returncode == 0}
        self.assertTrue(found or sys.version_info < (3, 9))
        (self.folder / "anywhere").mkdir()
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(self.folder / "anywhere")
        code = ("import posenc, array; x = memoryview(array.array('f', [1, 0] * 3)).cast('B').cast('f', (3, 2)); "
                "posenc.rotate(x, posenc.prepare(posenc.Rope(dims=2))); print(round(x[1, 0], 4))")
        for python in sorted(found):
            with self.subTest(python):
                self.assertEqual(run(python, "-B", "-X", "dev", "-W", "error", "-c", code,
                                     env={**ENVIRONMENT, "PYTHONPATH": str(self.folder / "anywhere")}).strip(), "0.5403")

    def test_it_runs_in_a_fresh_environment(self):
        run("/usr/bin/env", sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", self.folder / "venv")
        python = self.folder / "venv/bin/python"
        run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", self.wheel)
        where = run(python, "-c", "import posenc; print(posenc.__file__)", cwd=self.folder)
        self.assertIn("venv", where)
        for test in ("refusals_test.py", "values_test.py"):
            run(python, "-B", ROOT / "python/tests" / test, cwd=self.folder)


if __name__ == "__main__":
    unittest.main()
