#!/usr/bin/env python3
"""Counts how `posenc inspect` does on configs whose answer is known.

    census.py PROGRAM CONFIGS.json …

Each file is a list of {"name", "config", "truth": {"groups": [{"layers", "scheme", "layout", "dims", …,
"frequencies"}]}}; rows without truth count as answered or refused. Prints the counts, every wrong answer, and the most
processor time that one took. A wrong answer that states nothing as assumed is the worst: the exit status is 1 where there is one."""
import json
import os
import resource
import subprocess
import sys
import tempfile


def layers_of(text, count):
    found = []
    for part in (text or f"0-{count - 1}").split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def problem(group, truth):
    """What is wrong with a group of layers; "" where it is right."""
    scheme = group["scheme"]
    wanted = truth if isinstance(truth, str) else truth.get("scheme", "rope")
    if scheme["scheme"] != wanted:
        return f"scheme {scheme['scheme']}, truth {wanted}"
    if wanted != "rope" or isinstance(truth, str):
        return ""
    for key in ("layout", "dims", "first_dim", "sign", "sections"):
        if truth.get(key) not in (None, [], scheme.get(key)):
            return f"{key} {scheme.get(key)}, truth {truth[key]}"
    for key, got in (("magnitude", scheme.get("magnitude", 1.0)), ("softmax_factor", group["softmax_factor"])):
        if key in truth and abs(got / truth[key] - 1) > 1e-4:
            return f"{key} {got}, truth {truth[key]}"
    expected, got = truth.get("frequencies"), group["frequencies"]
    if expected is not None and (len(expected) != len(got) or any(
            abs(a - b) > 1e-5 * abs(b) for a, b in zip(got, expected))):
        return "frequencies differ"
    return ""


def judge(document, groups):
    count = 1 + max((max(one["layers"], default=0) for one in groups), default=0)
    by_layer = {}
    for group in document["layers"]:
        for layer in layers_of(group["layers"], count):
            by_layer.setdefault(layer, group)
    for one in groups:
        for layer in one["layers"] or [0]:
            text = problem(by_layer[layer], one.get("is", one)) if layer in by_layer else "is missing"
            if text:
                return f"layer {layer}: {text}"
    return ""


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    program, files = os.path.abspath(sys.argv[1]), sys.argv[2:]
    counts = {"right": 0, "wrong": 0, "wrong without an assumed line": 0, "answered": 0, "refused": 0}
    slowest = (0.0, "")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config.json")
        for row in (one for file in files for one in json.load(open(file, encoding="utf-8"))):
            with open(path, "w", encoding="utf-8") as out:
                json.dump(row["config"], out)
            start = seconds_of_children()
            run = subprocess.run([program, "inspect", path, "--json"], capture_output=True, text=True, check=False)
            slowest = max(slowest, (seconds_of_children() - start, row["name"]))
            if run.returncode:
                counts["refused"] += 1
                print(f"refused: {row['name']}: {run.stderr.strip()}")
            elif not row.get("truth"):
                counts["answered"] += 1
            else:
                document = json.loads(run.stdout)
                text = judge(document, row["truth"]["groups"])
                counts["wrong" if text else "right"] += 1
                if text:
                    counts["wrong without an assumed line"] += not document["assumed"]
                    print(f"wrong: {row['name']}: {text}; assumed: {len(document['assumed'])}")
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(f"slowest: {1000 * slowest[0]:.0f} ms of processor time ({slowest[1]})")
    return 1 if counts["wrong without an assumed line"] else 0


if __name__ == "__main__":
    sys.exit(main())
