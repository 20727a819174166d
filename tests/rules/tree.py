"""The files of the project, and how a rule reports what it finds."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

CPP = {".h", ".cpp", ".cu", ".cuh"}


def files(root):
    """Every file that is, or would be, under version control, relative to the root."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"],
        capture_output=True, text=True)
    if listed.returncode == 0 and (root / ".git").exists():
        found = [Path(name) for name in listed.stdout.split("\0") if name]
    else:  # an unpacked release
        ignored = {"build", ".git", "__pycache__"}
        found = [path.relative_to(root) for path in root.rglob("*")]
        found = [path for path in found if not ignored & set(path.parts)]
    # A link to a folder, or a file that was removed and not yet committed, has no text to read.
    return sorted(path for path in found if (root / path).is_file())


def sources(root, suffixes=CPP):
    return [path for path in files(root) if path.suffix in suffixes]


def lines(root, path):
    """The lines of a text file, from 1; none for other files."""
    try:
        text = (root / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from enumerate(text.split("\n"), start=1)


def without_comments(text):
    """C++ with comments and the insides of literals blanked, line by line as before."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(pattern, blank, text, flags=re.DOTALL)


def compile_commands(build):
    """(source, arguments) of everything that the build compiles: without -c, -o, the source itself, and the
    precompiled header, so that each source must bring what it needs."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = iter(shlex.split(entry["command"]))
        arguments = []
        for word in words:
            if word in ("-o", "-c", "-MF", "-MT", "-MQ", "-include"):
                next(words)
            elif word not in ("-MD", "-MMD", "-Winvalid-pch"):
                arguments.append(word)
        yield Path(entry["file"]), arguments


def precompiles(build):
    """Whether the build puts a precompiled header before its sources."""
    return "cmake_pch" in (build / "compile_commands.json").read_text()


def library_arguments(root, build):
    """How the build compiles src/error.cpp: compiler, definitions, include paths, warnings."""
    for source, arguments in compile_commands(build):
        if source == root / "src" / "error.cpp":
            return arguments
    raise SystemExit("src/error.cpp is not in compile_commands.json")


# What a file names at its outermost level, roughly: functions, types, constants, aliases.
OUTERMOST = re.compile(r"^(?:\[\[\w+\]\] |template <.*?> |inline |static |constexpr |const )*"
                       r"(?:(?:struct|class|enum class|enum|using|concept) (?P<type>\w+)|"
                       r"[A-Za-z_][\w:]*(?:<.*?>)?[ &*]+(?:const )?(?P<name>\w+) ?[({;=\[])", re.MULTILINE)
UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"^# *(define|undef)\b", re.MULTILINE)


# What stands after a comma in `constexpr int kOne = 1, kOther = 2;`.
FURTHER = re.compile(r"^constexpr \w.*;$", re.MULTILINE)
DEFINED = re.compile(r"^(?:struct|class|enum class|enum) (\w+)[^;{]*\{", re.MULTILINE)


def outermost_names(text):
    further = (name for line in FURTHER.findall(text) for name in re.findall(r", (\w+) =", line))
    return {match["type"] or match["name"] for match in OUTERMOST.finditer(text)} | set(further)


def batches(root, paths, most=12):
    """The sources in groups that can be compiled as one, for what is slow only because every source reads the same
    headers again. What one of a group keeps to itself has no name that another has, or a header of another; that is
    guessed, so whoever compiles a group must be ready to compile its sources one by one."""
    texts = {path: (root / path).read_text(encoding="utf-8") for path in {*paths, *sources(root, {".h"})}}
    declared = {path: outermost_names(without_comments(texts[path])) for path in texts if path.suffix == ".h"}

    # A type of one name may be in two headers, in two namespaces; sources that use one do not go with the other.
    defined = {}
    for header in sorted(declared):
        for name in DEFINED.findall(without_comments(texts[header])):
            defined.setdefault(name, []).append(header)
    twice = {header: set() for header in declared}
    for header, other in ((one, two) for homes in defined.values() for one in homes for two in homes if one != two):
        twice[header].add(other)

    def headers_of(path, found):
        for name in re.findall(r'^#include "(.*)"', texts[path], re.MULTILINE):
            for header in (Path("include", name), Path("src", name), Path("tests", name), path.parent / name,
                           Path(name)):
                if header in declared and header not in found:
                    found.add(header)
                    headers_of(header, found)
        return found

    alone, groups = [], []  # groups: [(sources, names of their own, names in their headers, their headers)]
    for path in paths:
        if MACRO.search(texts[path]):
            alone.append([path])
            continue
        own = outermost_names(without_comments("\n".join(UNNAMED.findall(texts[path]))))
        mine = headers_of(path, set())
        others = set().union(*(declared[header] for header in mine))
        rivals = set().union(*(twice[header] for header in mine))
        for group, names, visible, read in groups:
            if len(group) < most and not own & (names | visible) and not names & others and not rivals & read:
                group.append(path)
                names |= own
                visible |= others
                read |= mine
                break
        else:
            groups.append(([path], own, others, mine))
    # the longest first, so that no core waits for another at the end
    return sorted((group for group, *_ in groups), key=len, reverse=True) + alone


def as_one(root, group):
    """The text of a source that is all of these."""
    return "".join(f'#include "{root / path}"  // NOLINT(bugprone-suspicious-include)\n' for path in group)


class Report:
    """Collects `file:line: what is wrong`; a rule that looked at nothing fails too."""

    def __init__(self):
        self.problems = []
        self.seen = 0

    def look(self, count=1):
        self.seen += count

    def problem(self, path, line, text):
        self.problems.append(f"{path}:{line}: {text}")

    def finish(self):
        for problem in self.problems:
            print(problem)
        if not self.seen:
            print("nothing was looked at: the rule or its arguments are wrong")
        print(f"{self.seen} looked at, {len(self.problems)} wrong")
        sys.exit(0 if self.seen and not self.problems else 1)
