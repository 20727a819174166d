"""Every judgement has a test on both sides: plants one-line faults, one at a time, and expects a test program to fail.

run.py ROOT BUILD [NAME…]
run.py ROOT --texts          only whether every text that is to be replaced is where it should be

BUILD is one of the tree as it is, with the library static. A fault is compiled into what depends on its file, and that is
linked in front of the rest of the build; neither tree nor build is touched. mutants.json lists the faults: the file, the
text that is replaced (it occurs exactly once), its replacement, the test program and which of its tests must fail. A fault
that does not compile proves nothing and counts as an error. What is compiled for fewer SIMD targets than the build is also
compiled without a fault, and must then pass. NAME… runs only these.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def output_of(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


class Build:
    """What Ninja and CMake know of the build."""

    def __init__(self, folder):
        self.folder = folder
        self.commands = {}  # object -> (source, words)
        for entry in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8")):
            words = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
            self.commands[words[words.index("-o") + 1]] = (Path(entry["file"]), words)
        self.dependencies = {}  # object -> files
        name = ""
        for line in output_of(["ninja", "-t", "deps"], folder).splitlines():
            if line.startswith(" "):
                self.dependencies[name].add(os.path.normpath(folder / line.strip()))
            elif line:
                name = line.partition(":")[0]
                self.dependencies[name] = set()

    def objects_with(self, path, program):
        """The objects that the program is made of and that depend on the file."""
        inputs = output_of(["ninja", "-t", "inputs", f"tests/{program}"], self.folder).splitlines()
        return [name for name in inputs if str(path) in self.dependencies.get(name, ())]

    def link_of(self, program):
        """The words of the command that links a test program."""
        last = output_of(["ninja", "-t", "commands", f"tests/{program}"], self.folder).splitlines()[-1]
        (link,) = [part for part in last.split(" && ") if f" -o tests/{program}" in part]
        return shlex.split(link)


def has_fewer_targets(words):
    """Whether a fault is compiled for fewer SIMD targets than the build: on x86-64, which has five."""
    return any(word.startswith("-DHWY_DISABLED_TARGETS=") for word in words)


def compile_fault(root, build, name, overlay):
    """Compiles an object with the files of the overlay in place of the tree's; its path, or None and what was said."""
    source, words = build.commands[name]
    words = list(words)
    unit = overlay / "units" / name.replace("/", "_")
    unit.parent.mkdir(exist_ok=True)
    text = source.read_text(encoding="utf-8")
    if source.is_relative_to(root) and (overlay / source.relative_to(root)).exists():
        source = overlay / source.relative_to(root)
    else:  # a unit that CMake made names its sources by their paths
        for path in (path for path in overlay.rglob("*.cpp") if path.parent != unit.parent):
            text = text.replace(f'"{root / path.relative_to(overlay)}"', f'"{path}"')
        source = unit.with_suffix(".cxx")
        source.write_text(text, encoding="utf-8")
    made = unit.with_suffix(".made.o")
    words[words.index("-o") + 1] = str(made)
    words[words.index("-c") + 1] = str(source)
    folders = [f"-I{overlay / part}" for part in ("src", "include")]
    # quickly, for one vector width, and without warnings: a fault may leave a variable unused
    quickly = ["-O1", "-g0", "-w"]
    if has_fewer_targets(words):
        quickly += ["-UHWY_DISABLED_TARGETS", "-DHWY_DISABLED_TARGETS=(~(HWY_AVX2|HWY_SCALAR|HWY_EMU128))"]
    done = subprocess.run([words[0], *folders, *words[1:], *quickly], cwd=build.folder, capture_output=True, text=True)
    return (made, "") if done.returncode == 0 else (None, done.stderr)


def run_tests(program, pattern, most_seconds=900):
    """Whether they pass, how many they were, and what was said last. A fault may leave a loop without an end."""
    try:
        done = subprocess.run([str(program), f"--gtest_filter={pattern}", "--gtest_brief=1", "--gtest_fail_fast"],
                              capture_output=True, text=True, timeout=most_seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return False, 0, f"not done after {most_seconds} s"
    count = re.search(r"\[==========\] (\d+) tests? from .* ran", done.stdout)
    return done.returncode == 0, int(count[1]) if count else 0, done.stdout[-2000:]


def text_of(mutant, root):
    """The text of its file, and what is wrong with the fault."""
    path = root / mutant["file"]
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    count = text.count(mutant["from"])
    return text, "" if count == 1 else f"ERROR: '{mutant['from']}' occurs {count} times in {mutant['file']}"


def verdict(mutant, root, build):
    """'caught', 'SURVIVED', or what went wrong."""
    path = root / mutant["file"]
    if mutant.get("is_control"):
        changed = path.read_text(encoding="utf-8")
    else:
        text, problem = text_of(mutant, root)
        if problem:
            return problem
        changed = text.replace(mutant["from"], mutant["to"])
    objects = build.objects_with(path, mutant["program"])
    if not objects:
        return f"ERROR: {mutant['program']} does not depend on {mutant['file']}"
    with tempfile.TemporaryDirectory(prefix="posenc-mutant-") as folder:
        overlay = Path(folder)
        (overlay / mutant["file"]).parent.mkdir(parents=True)
        (overlay / mutant["file"]).write_text(changed, encoding="utf-8")
        link = build.link_of(mutant["program"])
        for name in objects:
            made, said = compile_fault(root, build, name, overlay)
            if made is None:
                return f"ERROR: does not compile\n{said[-2000:]}"
            # What is in the library is defined before the library is asked for it.
            if name in link:
                link[link.index(name)] = str(made)
            else:
                link.insert(1, str(made))
        program = overlay / mutant["program"]
        link[link.index("-o") + 1] = str(program)
        done = subprocess.run(link, cwd=build.folder, capture_output=True, text=True)
        if done.returncode:
            return f"ERROR: does not link\n{done.stderr[-2000:]}"
        return "SURVIVED" if run_tests(program, mutant["filter"])[0] else "caught"


def controls_of(chosen, root, build):
    """What is compiled for fewer targets, without a fault: its tests must pass, or what they catch is the build. Files of one
    unit, which are compiled together, have one control."""
    controls = {}
    for mutant in chosen:
        objects = build.objects_with(root / mutant["file"], mutant["program"])
        if any(has_fewer_targets(build.commands[name][1]) for name in objects if name in build.commands):
            control = controls.setdefault((mutant["program"], *objects), {"file": mutant["file"], "filters": set()})
            control["filters"].add(mutant["filter"])
    return [{"name": f"no fault: {Path(control['file']).name}", "file": control["file"], "program": program,
             "is_control": True, "filter": "*" if "*" in control["filters"] else ":".join(sorted(control["filters"]))}
            for (program, *_), control in controls.items()]


def mutants_of(root):
    return json.loads((root / "tests" / "mutants" / "mutants.json").read_text(encoding="utf-8"))


def check_texts(root):
    problems = [f"{mutant['name']}: {problem}" for mutant in mutants_of(root) if (problem := text_of(mutant, root)[1])]
    print("\n".join(problems) or "every fault has its place")
    return 1 if problems else 0


def main(root, folder, names):
    build = Build(folder)
    mutants = mutants_of(root)
    if unknown := set(names) - {mutant["name"] for mutant in mutants}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in mutants if not names or mutant["name"] in names]
    # Without a fault, all of these tests pass; otherwise nothing below would mean anything.
    for program, pattern in sorted({(mutant["program"], mutant["filter"]) for mutant in chosen}):
        passes, count, said = run_tests(folder / "tests" / program, pattern)
        if not passes or count == 0:
            raise SystemExit(f"without a fault: {program} {pattern}: {count} tests, and not all pass\n{said}")
    caught = 0

    def timed(mutant):
        began = time.monotonic()
        return verdict(mutant, root, build), time.monotonic() - began

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        chosen = controls_of(chosen, root, build) + chosen
        for mutant, (found, seconds) in zip(chosen, pool.map(timed, chosen)):
            if mutant.get("is_control"):
                found = {"SURVIVED": "passes", "caught": "FAILS"}.get(found, found)
            caught += found in ("caught", "passes")
            print(f"{mutant['name']:<32} {seconds:4.0f} s   {found}", flush=True)
    print(f"{caught} passed, {len(chosen) - caught} failed")
    return 0 if chosen and caught == len(chosen) else 1


if __name__ == "__main__":
    if sys.argv[2] == "--texts":
        sys.exit(check_texts(Path(sys.argv[1]).resolve()))
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]))
