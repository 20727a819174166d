"""The tools that make wheels for older systems, and that the package can be read by Python 3.9.

wheel_test.py ROOT COMPILER
"""

import ast
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, COMPILER = Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(ROOT / "packaging/wheel"))

import check  # noqa: E402
import old_glibc  # noqa: E402

MACHINE = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
LISTING = """
00000000000822c0 g    DF .text\t00000000000000c4  GLIBC_2.34  pthread_create
00000000000822c0 g    DF .text\t00000000000000c4 (GLIBC_2.17) pthread_create
0000000000030000 g    DF .text\t00000000000000c4  GLIBC_2.34  dlopen
0000000000030000 g    DF .text\t00000000000000c4 (GLIBC_2.17) dlopen
0000000000030000 g    DF .text\t00000000000000c4  GLIBC_2.34  aio_read
0000000000030000 g    DF .text\t00000000000000c4 (GLIBC_2.17) aio_read
0000000000040000 w    DF .text\t0000000000000010  GLIBC_2.17  memcpy
0000000000050000 g    DO .bss\t0000000000000001  GLIBC_2.32  __libc_single_threaded
0000000000050000 g    DO .data\t0000000000000008  GLIBC_2.17  stdout
0000000000060000 g    DF .text\t0000000000000010 (GLIBC_2.17) exp
0000000000060000 g    DF .text\t0000000000000010  GLIBC_2.29  exp
0000000000000000 g    DO *ABS*\t0000000000000000  GLIBC_2.17  GLIBC_2.17
0000000000000000      DF *UND*\t0000000000000000  GLIBC_PRIVATE _dl_signal_error
"""


def compiled(folder, code, *flags):
    source = folder / "code.c"
    source.write_text(code)
    result = subprocess.run([COMPILER, "-x", "c", "-shared", "-fPIC", "-o", str(folder / "libcode.so"), str(source), *flags],
                            capture_output=True, text=True)
    return result.stderr if result.returncode else ""


class OldGlibc(unittest.TestCase):
    def test_each_symbol_has_its_newest_version_that_is_old_enough(self):
        found = {name: old_glibc.choose(name, versions, (2, 28), "libc.so.6")
                 for name, versions in old_glibc.symbols(LISTING).items()}
        self.assertEqual(found, {"pthread_create": ("libpthread.so.0", (2, 17)), "dlopen": ("libdl.so.2", (2, 17)), "aio_read": None,
                                 "memcpy": ("libc.so.6", (2, 17)), "__libc_single_threaded": None, "stdout": ("libc.so.6", (2, 17)),
                                 "exp": ("libc.so.6", (2, 17))})
        self.assertEqual(old_glibc.choose("exp", old_glibc.symbols(LISTING)["exp"], (2, 29), "libm.so.6"), ("libm.so.6", (2, 29)))

    def test_what_is_linked_against_it_needs_the_older_glibc(self):
        libc = Path(subprocess.run([COMPILER, "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True).stdout.strip())
        listing = subprocess.run(["objdump", "-T", str(libc)], capture_output=True, text=True, check=True).stdout
        if (2, 34) not in old_glibc.symbols(listing).get("pthread_create", {}):
            self.skipTest("this glibc is older than 2.34")
        threads = ("typedef unsigned long T; int pthread_create(T*, void*, void* (*)(void*), void*); int puts(const char*);"
                   "int start(void* (*f)(void*)) { T t; return puts(\"\") + pthread_create(&t, 0, f, 0); }")
        newer = "int pthread_cond_clockwait(void*, void*, int, void*); int f(void) { return pthread_cond_clockwait(0, 0, 0, 0); }"
        with tempfile.TemporaryDirectory() as keep:
            folder = Path(keep)
            self.assertEqual(compiled(folder, threads), "")
            faults, count = check.check(folder, MACHINE, "2.28")
            self.assertEqual((faults, count), (["libcode.so: pthread_create needs GLIBC_2.34, newer than GLIBC_2.28"], 1))

            stubs = folder / "stubs"
            subprocess.run([sys.executable, "-B", ROOT / "packaging/wheel/old_glibc.py", libc.parent, "2.28", stubs, COMPILER], check=True,
                           stdout=subprocess.DEVNULL)
            subprocess.run([COMPILER, "-x", "c", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", ROOT / "packaging/wheel/newer.c", "-o",
                            stubs / "newer.o"], check=True)
            subprocess.run(["ar", "rcsD", stubs / "libnewer.a", stubs / "newer.o"], check=True)
            # pthread_cond_clockwait came with 2.30
            self.assertRegex(compiled(folder, newer, f"-L{stubs}", "-Wl,-z,defs"), "undefined reference to .pthread_cond_clockwait")
            count = "extern char __libc_single_threaded; int is_alone(void) { return __libc_single_threaded; }"
            self.assertEqual(compiled(folder, threads + count, f"-L{stubs}", "-Wl,-z,defs"), "")
            heads = subprocess.run(["objdump", "-p", folder / "libcode.so"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(set(re.findall(r"NEEDED\s+(\S+)", heads)), {"libc.so.6", "libpthread.so.0"})
            shutil.rmtree(stubs)
            self.assertEqual(check.check(folder, MACHINE, "2.28")[0], [])

    def test_misuse(self):
        for arguments in ((), ("/nowhere", "2.28", "out", COMPILER), ("/nowhere", "newest", "out", COMPILER)):
            result = subprocess.run([sys.executable, "-B", ROOT / "packaging/wheel/old_glibc.py", *arguments], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)


class Check(unittest.TestCase):
    def test_what_the_oldest_system_lacks(self):
        most = {**check.OF_GCC_8, "GLIBC": (2, 28)}
        line = "0000000000000000      DF *UND*\t0000000000000000 {0} {1}".format
        for version, name, expected in (
                ("(GLIBC_2.28)", "f", []), ("(GLIBC_2.29)", "f", ["f needs GLIBC_2.29, newer than GLIBC_2.28"]),
                ("(GLIBCXX_3.4.26)", "f", ["f needs GLIBCXX_3.4.26, newer than GLIBCXX_3.4.25"]), ("(CXXABI_1.3.11)", "f", []),
                ("(CXXABI_1.3.12)", "f", ["f needs CXXABI_1.3.12, newer than CXXABI_1.3.11"]), ("(GCC_7.0.0)", "f", []),
                ("(GCC_13.0.0)", "f", ["f needs GCC_13.0.0, newer than GCC_7.0.0"]),
                ("(HWY_0)", "f", ["f has the version HWY_0, of a library that is not on every Linux"]),
                ("", "PyType_IsSubtype", []), ("", "Py_NewRef", ["Py_NewRef is not known to be in Python 3.9 (PYTHON_39 in check.py)"]),
                ("", "posenc_abi", []), ("", "nobody_has_it", ["nobody_has_it is undefined"])):
            with self.subTest(f"{name} {version}"):
                self.assertEqual(check.faults_of_symbols(line(version, name), most, {"posenc_abi"}), expected)
        self.assertEqual(check.faults_of_symbols("0000000000000000  w   D  *UND*\t0000000000000000  Base        __gmon_start__", most, set()), [])
        self.assertEqual(check.faults_of_symbols("0000000000000000  w   D  *UND*\t0000000000000000              __gmon_start__", most, set()), [])

    def test_modules(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "__init__.py").write_text("from .one import a\nfrom . import b\nimport os\n\ndef f():\n    from .two import c\n")
            (folder / "one.py").write_text("")
            self.assertEqual(check.missing_modules(folder), ["__init__.py: imports two, which is not in the package"])
            (folder / "two.abi3.so").write_text("")
            self.assertEqual(check.missing_modules(folder), [])

    def test_libraries(self):
        with tempfile.TemporaryDirectory() as keep:
            folder = Path(keep)
            self.assertEqual(check.check(folder, MACHINE, "2.28"), ([], 0))
            self.assertEqual(compiled(folder, "int answer(void) { return 42; }"), "")
            self.assertEqual(check.check(folder, MACHINE, "2.28")[0], [])
            other = "x86_64" if MACHINE == "aarch64" else "aarch64"
            self.assertEqual(check.check(folder, other, "2.28")[0], [f"libcode.so: is not for {other}"])
            self.assertEqual(compiled(folder, "int answer(void) { return 42; }", "-Wl,--no-as-needed", "-lstdc++"), "")
            self.assertIn("libcode.so: needs libstdc++.so.6, which is not on every Linux", check.check(folder, MACHINE, "2.28")[0])


class Python39(unittest.TestCase):
    def test_every_module_is_its_syntax(self):
        paths = [path for part in ("posenc", "src") for path in sorted((ROOT / "python" / part).glob("*.py*"))]
        self.assertGreater(len(paths), 15)
        for path in paths:
            with self.subTest(path.name):
                tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
                for node in ast.walk(tree):
                    if isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and path.name != "_values.py":
                        self.assertFalse(self.uses_kw_only(tree) and any(name.name == "dataclass" for name in node.names),
                                         "kw_only came with 3.10: import dataclass from ._values")

    @staticmethod
    def uses_kw_only(tree):
        return any(isinstance(node, ast.keyword) and node.arg in ("kw_only", "slots") for node in ast.walk(tree))

    def test_union_types_are_never_evaluated(self):
        """X | Y between types came with 3.10; as an annotation it is only read with the future import."""
        for path in sorted((ROOT / "python/posenc").glob("*.py")):
            text = path.read_text("utf-8")
            tree = ast.parse(text)
            annotations = [node.annotation for node in ast.walk(tree) if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation]
            annotations += [node.returns for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.returns]
            if any(isinstance(inner, ast.BinOp) for annotation in annotations for inner in ast.walk(annotation)):
                self.assertIn("from __future__ import annotations", text, path.name)

    def test_the_older_dataclass(self):
        """What _values.py does where Python has no kw_only."""
        text = (ROOT / "python/posenc/_values.py").read_text("utf-8")
        names = {}
        exec(compile(text.replace("sys.version_info >= (3, 10)", "False"), "_values.py", "exec"), names)

        @names["dataclass"](frozen=True, kw_only=True)
        class Value:
            size: int = 3

        self.assertEqual((Value().size, Value(size=4)), (3, Value(size=4)))
        with self.assertRaises(TypeError):
            Value(4)
        with self.assertRaises(TypeError):
            Value(weight=4)
        with self.assertRaises(AttributeError):
            Value().size = 5

    def test_no_format_with_a_length(self):
        """Headers from 3.13 on call what before 3.13 read lengths as int."""
        for path in sorted((ROOT / "python/src").glob("*.[ch]")):
            for format_ in re.findall(r'(?:PyArg_ParseTuple|Py_BuildValue|PyObject_CallMethod)\([^;]*?"([^"]*)"', path.read_text("utf-8")):
                self.assertNotIn("#", format_, path.name)

    def test_the_floor_is_the_same_everywhere(self):
        self.assertIn('requires-python = ">=3.9"', (ROOT / "python/pyproject.toml").read_text())
        self.assertIn('"py_limited_api": "cp39"', (ROOT / "python/setup.py").read_text())
        self.assertIn("#define Py_LIMITED_API 0x03090000", (ROOT / "python/src/_posenc.c").read_text())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
