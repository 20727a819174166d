"""Every judgement has a test on both sides: plants one-line faults, one at a time, and expects the tests to fail.

run.py ROOT FOLDER [NAME…]

FOLDER keeps a copy of the tree and its build between runs. mutants.json lists the faults: the file, the text that is
replaced (it occurs exactly once), its replacement, the targets to build and the tests that must fail. A fault that
does not compile proves nothing and counts as an error. NAME… runs only these.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

IGNORED = {"build", ".git"}


def copy_tree(root, tree):
    """Copies what is new or has changed, so that the build in the copy does only what is needed."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], capture_output=True, text=True, check=True).stdout
    names = {name for name in listed.split("\0") if name and (root / name).is_file()}
    for path in tree.rglob("*"):
        name = path.relative_to(tree).as_posix()
        if path.is_file() and name.split("/")[0] not in IGNORED and name not in names:
            path.unlink()
    for name in sorted(names):
        target = tree / name
        content = (root / name).read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target)


def run(command, folder, log):
    with open(log, "a", encoding="utf-8") as output:
        return subprocess.run(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL).returncode


def verdict(mutant, tree, build, log):
    """'caught', 'SURVIVED', or what went wrong."""
    path = tree / mutant["file"]
    text = path.read_text(encoding="utf-8")
    if text.count(mutant["from"]) != 1:
        return f"ERROR: '{mutant['from']}' occurs {text.count(mutant['from'])} times in {mutant['file']}"
    path.write_text(text.replace(mutant["from"], mutant["to"]), encoding="utf-8")
    try:
        if run(["cmake", "--build", str(build), "--parallel", str(os.cpu_count()), "--target", *mutant["targets"]],
               tree, log):
            return "ERROR: does not compile"
        test = ["ctest", "--test-dir", str(build), "--no-tests=error", "--parallel", str(os.cpu_count()), "-R",
                mutant["tests"]]
        return "caught" if run(test, tree, log) else "SURVIVED"
    finally:
        path.write_text(text, encoding="utf-8")


def main(root, folder, names):
    tree, log = folder / "tree", folder / "log.txt"
    build = tree / "build" / "dev"
    tree.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    copy_tree(root, tree)
    mutants = json.loads((root / "tests" / "mutants" / "mutants.json").read_text(encoding="utf-8"))
    if unknown := set(names) - {mutant["name"] for mutant in mutants}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in mutants if not names or mutant["name"] in names]
    targets = sorted({target for mutant in chosen for target in mutant["targets"]})
    # Without a fault, all of these tests pass; otherwise nothing below would mean anything.
    if run(["cmake", "--preset", "dev"], tree, log) or run(
            ["cmake", "--build", str(build), "--parallel", str(os.cpu_count()), "--target", *targets], tree, log):
        raise SystemExit(f"the tree does not build: {log}")
    tests = "|".join(sorted({mutant["tests"] for mutant in chosen}))
    if run(["ctest", "--test-dir", str(build), "--no-tests=error", "--parallel", str(os.cpu_count()), "-R", tests],
           tree, log):
        raise SystemExit(f"the tests fail without a fault: {log}")
    caught = 0
    for mutant in chosen:
        found = verdict(mutant, tree, build, log)
        caught += found == "caught"
        print(f"{mutant['name']:<32} {found}", flush=True)
    print(f"{caught} passed, {len(chosen) - caught} failed")
    return 0 if chosen and caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3:]))
