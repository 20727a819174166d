"""Makes libraries to link against that look like an older glibc, from the one that is installed.

old_glibc.py FOLDER VERSION OUT COMPILER   e.g. old_glibc.py /lib/x86_64-linux-gnu 2.28 out x86_64-linux-gnu-gcc

A program asks for each function of glibc at the version that the linker saw, which is by default the newest. The libraries made
here have the same names and no code; each exports a symbol only at its newest version up to VERSION, and none that is newer. So
what is linked against them runs on VERSION and everything later, and what is not there yet is reported by the linker as
undefined. Functions of threads and dlopen, which glibc 2.34 moved into libc.so.6, are where they were before.
"""

import re
import subprocess
import sys
from pathlib import Path

# 0000000000082d60 g    DF .text	00000000000000c4  GLIBC_2.34  pthread_create; an older version is in parentheses
SYMBOL = re.compile(r"^[0-9a-f]+ .{6}(.) (\S+)\s+([0-9a-f]+)\s+\(?GLIBC_([\d.]+)\)?\s+(\S+)$")
THREADS = re.compile(r"(pthread|sem|thrd|mtx|cnd|tss)_|call_once$|__pthread_")
LOADING = re.compile(r"dl(addr1?|close|error|info|mopen|open|sym|vsym)$")
MOVED = (2, 34)  # the release that made libpthread, libdl, librt, libutil and libanl part of libc


def parse(version):
    return tuple(map(int, version.split(".")))


def symbols(listing):
    """{name: {version: (is_object, size)}} of what `objdump -T` printed."""
    found = {}
    for line in listing.splitlines():
        match = SYMBOL.match(line)
        if match and match[2] != "*UND*" and not match[5].startswith("GLIBC_"):
            found.setdefault(match[5], {})[parse(match[4])] = (match[1] == "O", int(match[3], 16))
    return found


def choose(name, versions, most, library):
    """(library, version) that provides the symbol up to the version `most`, or None."""
    older = [version for version in versions if version <= most]
    if not older:
        return None
    if library == "libc.so.6":
        if LOADING.match(name):
            return "libdl.so.2", max(older)
        if THREADS.match(name):
            return "libpthread.so.0", max(older)
        if MOVED in versions:  # of librt, libutil, libanl or libresolv, which nothing here uses
            return None
    return library, max(older)


def assembly(entries):
    """The source of a library without code: {name: (is_object, size)}."""
    lines = []
    for name, (is_object, size) in sorted(entries.items()):
        kind, section = ("object", ".data") if is_object else ("function", ".text")
        size = max(size, 8) if is_object else 8
        lines.append(f"{section}\n.globl {name}\n.type {name},%{kind}\n.size {name},{size}\n{name}: .zero {size}")
    return "\n".join(lines) + '\n.section .note.GNU-stack,"",%progbits\n'


def version_script(versions):
    """{name: version} as the linker reads it."""
    nodes = {}
    for name, version in versions.items():
        nodes.setdefault(version, []).append(name)
    return "".join(f"GLIBC_{'.'.join(map(str, version))} {{ {' '.join(name + ';' for name in sorted(names))} }};\n"
                   for version, names in sorted(nodes.items()))


def make(folder, most, out, compiler):
    chosen = {}
    loader = next(iter(sorted(folder.glob("ld-linux*.so.*"))))
    for library in (folder / "libc.so.6", folder / "libm.so.6", loader):
        listing = subprocess.run(["objdump", "-T", str(library)], capture_output=True, text=True, check=True).stdout
        for name, versions in symbols(listing).items():
            if place := choose(name, versions, most, library.name):
                chosen.setdefault(place[0], {})[name] = (place[1], versions[place[1]])
    out.mkdir(parents=True, exist_ok=True)
    for library, entries in sorted(chosen.items()):
        source, script = out / f"{library}.s", out / f"{library}.map"
        source.write_text(assembly({name: kind for name, (_, kind) in entries.items()}))
        script.write_text(version_script({name: version for name, (version, _) in entries.items()}))
        subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{library}", f"-Wl,--version-script={script}",
                        "-o", str(out / library), str(source)], check=True)
    return sorted(chosen), loader.name


def main():
    if len(sys.argv) != 5 or not re.fullmatch(r"\d+\.\d+", sys.argv[2]):
        sys.exit("usage: old_glibc.py FOLDER VERSION OUT COMPILER")
    folder, out, compiler = Path(sys.argv[1]), Path(sys.argv[3]).resolve(), sys.argv[4]
    if not (folder / "libc.so.6").exists():
        sys.exit(f"old_glibc: there is no libc.so.6 in {folder}")
    libraries, loader = make(folder, parse(sys.argv[2]), out, compiler)
    # What the compiler asks for as -lc, -lm … A library beside the stubs, libnewer.a, has what the older glibc lacks.
    parts = " ".join(str(out / name) for name in libraries if name not in ("libc.so.6", "libm.so.6"))
    nonshared = subprocess.run([compiler, "-print-file-name=libc_nonshared.a"], capture_output=True, text=True, check=True).stdout.strip()
    (out / "libc.so").write_text(f"GROUP ( {out / 'libnewer.a'} {out / 'libc.so.6'} {nonshared} AS_NEEDED ( {parts} ) )\n")
    (out / "libm.so").write_text(f"INPUT ( {out / 'libm.so.6'} )\n")
    for name, library in (("libpthread.so", "libpthread.so.0"), ("libdl.so", "libdl.so.2")):
        (out / name).write_text(f"INPUT ( {out / library} )\n")
    print(f"old_glibc: {', '.join(libraries)} as of {sys.argv[2]} in {out}")


if __name__ == "__main__":
    main()
