"""Who may include whom. The table is the architecture: change it only together with a decision page.

layers.py ROOT
"""

import re
import sys
from pathlib import Path

from tree import Report, sources, without_comments

PUBLIC = "include/posenc/"


def public(*names):
    return tuple(f"{PUBLIC}{name}.h" for name in names)


# For the files below each folder, the longest match counts: what they may include of ours. A folder ends in "/".
# include/posenc is where rooms meet: `schemes` and `kernels` only in forms.h.
MAY_INCLUDE = {
    "include/": (PUBLIC,),
    "src/": (PUBLIC,),
    "src/forms/": ("src/forms/", f"{PUBLIC}terms/")
                  + public("compiled_once", "tensor", "types", "positions", "position_check", "forms", "frequency", "mrope", "error",
                           "random"),
    "src/numerics/": ("src/numerics/",) + public("frequency", "half", "half_types", "tensor", "types", "error"),
    "src/terms/": ("src/terms/", "src/forms/", "src/numerics/")
                  + public("tensor", "types", "forms", "frequency", "error", "terms/list"),
    "src/formats/": ("src/formats/",) + public("json", "npy", "npz", "safetensors", "gguf",
                                                      "byte_source", "tensor", "types", "error"),
    "src/schemes/": ("src/schemes/", "src/forms/compiled_once-inl.h", "src/numerics/", PUBLIC),
    "src/kernels/": ("src/kernels/", "src/terms/", "src/forms/", "src/numerics/")
                    + public("tensor", "types", "positions", "forms", "frequency", "apply", "backend", "cache", "cuda",
                             "error"),
    "src/attention/": ("src/attention/", "src/kernels/", "src/terms/", "src/forms/", "src/numerics/")
                      + public("tensor", "types", "positions", "forms", "frequency", "apply", "attention", "option_set",
                               "backend", "error"),
    "src/models/": ("src/models/", "src/formats/", "src/schemes/", PUBLIC),
    "src/diagnosis/": ("src/diagnosis/", "src/schemes/", PUBLIC),
    "src/properties/": ("src/properties/", "src/schemes/", "src/terms/", PUBLIC),
    "src/figures/": ("src/figures/", "src/terms/", PUBLIC),
    "src/lessons/": ("src/lessons/", PUBLIC),
    "src/c_api/": ("src/c_api/", PUBLIC),
    "python/": ("python/", f"{PUBLIC}posenc_c.h"),
    "lab/": ("lab/", PUBLIC),
    "cli/": ("cli/", "lab/", PUBLIC),
    "explorer/": ("explorer/", PUBLIC),
    "explorer/wasm/": ("explorer/", "lab/", PUBLIC),  # a model of the lab runs in the page
    "benchmarks/": ("benchmarks/", "lab/", "cli/flags/", "cli/system/", PUBLIC),  # on top: no room includes it
    "examples/": ("examples/", PUBLIC),
    "cmake/": ("src/c_api/option_kinds.h",),  # tools of the build; c_options.cpp writes a part of posenc_c.h
    "packaging/": (),  # scripts and recipes
    "tests/": ("",),  # tests may look inside everything
}

# A dependency stands in as few rooms as can be, so that replacing it is the work of one room.
MAY_USE = {
    r"hwy/": ("src/kernels/cpu/", "src/attention/cpu/", "src/terms/", "benchmarks/"),
    r"(oneapi/)?tbb(/|\.h)": ("src/kernels/cpu/",),
    r"rapidjson/": ("src/formats/",),
    r"zlib\.h": ("src/formats/", "src/kernels/cuda/", "cmake/"),  # files; kernels, packed (cmake/pack_ptx.cpp)
    r"utf8(/|\.h)": ("src/formats/", "src/lessons/", "cli/"),
    r"CLI/": ("cli/",),
    r"(sqlite3|zip)\.h$": ("cli/",),
    r"microhttpd\.h$": ("cli/server/",),
    r"mpi\.h$": ("examples/",),
    # The library neither prints nor opens files nor, outside kernels/cpu, starts threads: WebAssembly has none.
    r"(iostream|fstream|filesystem|print|unistd\.h|fcntl\.h|sys/(?!auxv).*)$": ("cli/", "benchmarks/", "examples/", "cmake/"),
    r"sys/auxv\.h": ("src/kernels/cpu/",),  # which instructions the machine has
    r"(thread|mutex|shared_mutex|condition_variable|future|semaphore|barrier|latch|stop_token|pthread\.h)$":
        ("src/kernels/cpu/", "src/kernels/cuda/", "lab/", "cli/", "benchmarks/", "examples/"),
    r"dlfcn\.h": ("src/kernels/cuda/", "lab/", "benchmarks/"),  # the GPU's driver; a BLAS
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def includes(text):
    """(line, quoted or not, name) of every include. Comments are gone, literals are still needed: they hold names."""
    code = without_comments(text)
    for match in INCLUDE.finditer(text):
        if code[match.start():match.end()].strip():  # else it stands in a comment
            yield text.count("\n", 0, match.start(2)) + 1, match.group(1) == '"', match.group(2)


def resolve(root, path, name, quoted):
    """The file of ours that an include means, or None where it is not ours."""
    places = [path.parent, Path("include"), Path("src"), Path("."), Path("tests")]
    for place in places if quoted else places[1:2]:
        candidate = root / place / name
        if candidate.is_file():
            return candidate.resolve().relative_to(root.resolve()).as_posix()
    return None


def room_of(path, table):
    matching = [room for room in table if path.as_posix().startswith(room)]
    return max(matching, key=len, default=None)


def check(root):
    report = Report()
    for path in sources(root):
        room = room_of(path, MAY_INCLUDE)
        if room is None:
            report.problem(path, 1, "in no room that the table of layers knows")
            continue
        for line, quoted, name in includes((root / path).read_text(encoding="utf-8")):
            report.look()
            target = resolve(root, path, name, quoted)
            if target is not None:
                if not target.startswith(MAY_INCLUDE[room]):
                    report.problem(path, line, f"{room} may not include {target}")
                continue
            if quoted and re.match(r"(posenc|forms|numerics|terms|formats|schemes|kernels|attention|models|diagnosis|properties|figures|lessons|lab|cli)/", name):
                report.problem(path, line, f'"{name}" does not exist')
            for pattern, rooms in MAY_USE.items():
                if re.match(pattern, name) and not path.as_posix().startswith(rooms + ("tests/",)):
                    report.problem(path, line, f"<{name}> may be used only in {', '.join(rooms)}")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
