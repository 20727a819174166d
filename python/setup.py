"""Builds the wheel: libposenc_c with CMake (or takes that of POSENC_PREFIX), the extension over it, and the classes of
schemes. The libraries that they need are copied into the wheel, so that it runs where none of them is installed.
packaging/wheel/build.sh makes the wheels of a release, which run on an older glibc too: it builds the package with CMake, names its
folder in POSENC_PACKAGE, and the platform it is for in POSENC_WHEEL_PLATFORM."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
NATIVE = HERE / "native"  # in an sdist: what CMake needs of the project
ROOT = NATIVE if NATIVE.is_dir() else HERE.parent
NATIVE_PARTS = ("CMakeLists.txt", "LICENSE", "README.md", "cmake", "include", "src", "content/models", "content/lab")
# Libraries of glibc and GCC are on every Linux that the wheel's tag names; the others come along.
EVERYWHERE = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z)\.so|ld-linux|linux-vdso")


def version():
    text = (ROOT / "include/posenc/version.h").read_text("utf-8")
    return re.search(r'POSENC_VERSION "(.*)"', text).group(1)


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


class BuildWithLibraries(build_ext):
    """The extension, with posenc/libs beside it."""

    def run(self):
        if "POSENC_PACKAGE" in os.environ:  # complete already
            shutil.copytree(os.environ["POSENC_PACKAGE"], Path(self.build_lib) / "posenc", dirs_exist_ok=True)
            return
        lab = Path(self.build_lib) / "posenc" / "lab"
        lab.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / "content/lab/claims.json", lab / "claims.json")
        prefix = Path(os.environ["POSENC_PREFIX"]) if "POSENC_PREFIX" in os.environ else self.build_library()
        library = next(path for path in sorted(prefix.glob("lib*/**/libposenc_c.so.*")) if not path.is_symlink())
        libs = Path(self.build_lib) / "posenc" / "libs"
        libs.mkdir(parents=True, exist_ok=True)
        ours = libs / "libposenc_c.so.0"
        shutil.copyfile(library, ours)
        self.bundle(ours, libs)
        for extension in self.extensions:
            extension.include_dirs = [str(prefix / "include"), str(HERE / "src")]
            extension.extra_objects = [str(ours)]
            extension.extra_link_args = ["-Wl,-rpath,$ORIGIN/libs", "-s"]
        super().run()
        package = Path(self.build_lib) / "posenc"
        for module in (HERE / "posenc").glob("*.py"):  # generate_schemes imports the package that is being built
            self.copy_file(str(module), str(package / module.name))
        for script, made in (("generate_attention.py", "keywords.py"), ("generate_schemes.py", "schemes.py")):
            run(sys.executable, "-B", HERE / "src" / script, package / made,
                env={**os.environ, "PYTHONPATH": str(Path(self.build_lib).resolve())})

    def build_library(self):
        """Configures, builds and installs libposenc_c, without program and tests."""
        build = Path(self.build_temp).resolve() / "cmake"
        prefix = build / "prefix"
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        run("cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DPOSENC_BUILD_CLI=OFF",
            "-DPOSENC_BUILD_TESTS=OFF", "-DPOSENC_LESSONS=OFF", f"-DPOSENC_CUDA={os.environ.get('POSENC_CUDA', 'ON' if shutil.which('clang++-22') else 'OFF')}", "-DCMAKE_INSTALL_LIBDIR=lib",
            f"-DCMAKE_INSTALL_PREFIX={prefix}")
        run("cmake", "--build", build, "--target", "posenc_c", "posenc", "--parallel", os.environ.get("POSENC_JOBS", os.cpu_count() or 2))
        run("cmake", "--install", build)
        return prefix

    def bundle(self, library, libs):
        """Copies the libraries that it needs beside it, and makes all of them look there."""
        run("strip", "--strip-unneeded", library)
        if not shutil.which("patchelf"):
            raise SystemExit("posenc: patchelf is needed to make a wheel (Debian's package patchelf)")
        listing = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
        for name, path in re.findall(r"(\S+) => (\S+) \(", listing):
            if not EVERYWHERE.match(name):
                shutil.copyfile(path, libs / name)
                run("patchelf", "--set-rpath", "$ORIGIN", libs / name)
        run("patchelf", "--set-soname", "libposenc_c.so.0", "--set-rpath", "$ORIGIN", library)


class SourceWithNative(sdist):
    """The package, and below native/ what CMake needs."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for part in NATIVE_PARTS:
            source, target = ROOT / part, Path(base_dir) / "native" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)
        for part in ("src", "tests"):
            shutil.copytree(HERE / part, Path(base_dir) / part, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


setup(version=version(),
      ext_modules=[Extension("posenc._posenc", ["src/_posenc.c"], py_limited_api=True, extra_compile_args=["-std=c11"])],
      cmdclass={"build_ext": BuildWithLibraries, "sdist": SourceWithNative},
      # What is built here needs this machine's glibc: a wheel for it, not one to pass on.
      options={"bdist_wheel": {"py_limited_api": "cp39",
                               "plat_name": os.environ.get("POSENC_WHEEL_PLATFORM", f"linux_{platform.machine()}")}})
