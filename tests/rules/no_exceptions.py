"""What WebAssembly needs compiles without exceptions, and needs neither threads nor files. What is compiled without
kernels for GPUs still defines every function of posenc/cuda.h.

no_exceptions.py ROOT BUILD CLANG

By clang, as WebAssembly is; not optimised, which is quicker and leaves no reference out.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tree import Report, as_one, library_arguments, rooms

REFUSED = re.compile(
    r"^(pthread_\w+|fopen(64)?|open(64)?|openat(64)?|read|write|fread|fwrite|mmap(64)?|__cxa_throw|__cxa_rethrow|"
    r"__cxa_begin_catch|__cxa_allocate_exception)(@.*)?$"
    r"|^std::(thread|basic_[io]?fstream|basic_filebuf|filesystem|condition_variable|__once_call)")


# What these need, they must bring: nobody else does where there are no exceptions.
OURS = re.compile(r"^posenc::")


def symbols_of(path):
    """(defined, undefined) names of an object."""
    listing = subprocess.run(["nm", "--demangle", "--format=posix", str(path)], capture_output=True, text=True,
                             check=True).stdout
    defined, undefined = set(), set()
    for name, kind in re.findall(r"^(.*?) ([A-Za-z])(?: +[0-9a-f]+)* *$", listing, re.MULTILINE):
        (undefined if kind in "Uwv" else defined).add(name)
    return defined, undefined


def check(root, build, clang):
    report = Report()
    # -UPOSENC_CPU_BACKEND comes last and wins; without the macro, the reference is the only backend.
    arguments = [clang, *library_arguments(build)[1:], "-O0", "-g0", "-fno-exceptions", "-UPOSENC_CPU_BACKEND",
                 "-UPOSENC_CUDA", f"-I{build / 'rows'}", "-c"]
    groups = [group for target, group in rooms(root, ["src"]) if not target.endswith(("_cpu", "_cuda", "_c_api"))]
    groups += [[build / "content.cpp"], [build / "classes.cpp"]]  # what the build makes of content/
    all_defined, all_undefined = set(), {}

    def compile_without(group):
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "room.cpp", Path(folder) / "room.o"
            source.write_text(as_one(root, group), encoding="utf-8")
            result = subprocess.run(arguments + [str(source), "-o", str(made)], capture_output=True, text=True)
            return (group, None, symbols_of(made)) if result.returncode == 0 else (group, result.stderr, None)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for group, error, symbols in pool.map(compile_without, sorted(groups, key=len, reverse=True)):
            report.look(len(group))
            name = group[0].parent
            if error is not None:
                report.problem(name, 1, "does not compile with -fno-exceptions:\n" + error)
                continue
            defined, undefined = symbols
            all_defined |= defined
            for symbol in undefined:
                all_undefined.setdefault(symbol, name)
                if REFUSED.search(symbol):
                    report.problem(name, 1, f"references {symbol}, which WebAssembly does not have")
    for symbol, path in sorted(all_undefined.items()):
        if OURS.search(symbol) and symbol not in all_defined:
            report.problem(path, 1, f"references {symbol}, which nothing defines in this build")
    for symbol in sorted(functions_for_gpus(build / "libposenc.a") - all_defined):
        report.problem("src/kernels/without_cuda.cpp", 1, f"does not define {symbol}")
    return report


def functions_for_gpus(library):
    """What posenc/cuda.h declares and a build with kernels for GPUs defines."""
    listing = subprocess.run(["nm", "--demangle", "--defined-only", str(library)], capture_output=True, text=True,
                             check=True).stdout
    return set(re.findall(r"^[0-9a-f]+ T (posenc::cuda::.*)$", listing, re.MULTILINE))


if __name__ == "__main__":
    check(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]).finish()
