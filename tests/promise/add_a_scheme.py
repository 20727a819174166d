"""Adds a scheme and a scaling to a copy of the tree, as CONTRIBUTING.md says, and looks for them in the program.

add_a_scheme.py ROOT BUILD COMPILER PROGRAM

PROGRAM is that of the tree as it is, which must know neither. BUILD is where it was built, with the library static: what
of it never sees the list of schemes is linked as it is.
"""

import json
import math
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HEADER = r"""#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// bias(h, m, n) = table[min(⌊|n − m| / stride⌋, steps − 1), h]
struct Staircase {
  static constexpr std::string_view name = "staircase";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score + table[|n-m| / stride, h]";
  static constexpr std::string_view used_by = "a test";

  std::int64_t heads = 2;
  std::int64_t steps = 4;
  std::int64_t stride = 8;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &Staircase::heads, "attention heads");
    visit("steps", &Staircase::steps, "rows of the table");
    visit("stride", &Staircase::stride, "distances that share a row");
  }
  TrainedTable trained_table() const { return {{{"steps", steps}, {"heads", heads}}}; }
  bool operator==(const Staircase&) const = default;
};

Bias prepare(const Staircase& scheme, const PrepareOptions& options = {});

}  // namespace posenc
"""

SOURCE = r"""#include "posenc/schemes/staircase.h"

#include <algorithm>

#include "schemes/check.h"

namespace posenc {

Bias prepare(const Staircase& scheme, const PrepareOptions& options) {
  schemes::check_between(Staircase::name, "heads", scheme.heads, 1, schemes::kHeadLimit);
  schemes::check_between(Staircase::name, "steps", scheme.steps, 1, 1024);
  schemes::check_between(Staircase::name, "stride", scheme.stride, 1, 1024);
  DistanceTable source;
  source.weights = schemes::table_of_shape(Staircase::name, options.weights, shape_of(scheme.trained_table()));
  const std::int64_t far = scheme.steps * scheme.stride;
  source.axes.emplace_back().first = -far;
  for (std::int64_t distance = -far; distance <= far; ++distance) {
    const std::int64_t step = (distance < 0 ? -distance : distance) / scheme.stride;
    source.axes.front().entries.push_back(std::min(step, scheme.steps - 1));
  }
  return {scheme.heads, std::move(source)};
}

}  // namespace posenc
"""

# compiled when the tests are; here it only has its place
TEST = r"""#include <gtest/gtest.h>

#include "posenc/posenc.h"

namespace posenc::staircase_test {
TEST(Staircase, RefusesNoSteps) { EXPECT_THROW(prepare(Staircase{.steps = 0}), Error); }
}  // namespace posenc::staircase_test
"""

SCALING = r"""struct SlowerScaling {
  static constexpr std::string_view name = "slower";
  static constexpr std::string_view formula = "w_i / times";
  double times = 2.0;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("times", &SlowerScaling::times, "divisor of every frequency");
  }
  bool operator==(const SlowerScaling&) const = default;
};

"""

SCALING_SOURCE = r"""#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {
template <class N> schemes::Scaled<N> slower(const SlowerScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "times", scaling.times);
  schemes::Scaled<N> to;
  to.frequencies = schemes::inverse_periods<N>(from.base, from.dims);
  for (N& frequency : to.frequencies) frequency /= N(scaling.times);
  return to;
}
}  // namespace
POSENC_SCALING(SlowerScaling, slower)
}  // namespace posenc
"""


def copy_of(root, folder):
    """The tree without what is built or hidden."""
    shutil.copytree(root, folder, ignore=shutil.ignore_patterns("build*", ".*", "__pycache__"), symlinks=True)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        sys.exit(f"{path}: is there already")
    path.write_text(text)


def insert(path, before, text):
    """Puts text before the one place where `before` stands."""
    whole = path.read_text()
    if whole.count(before) != 1:
        sys.exit(f"{path}: '{before}' stands there {whole.count(before)} times")
    path.write_text(whole.replace(before, text + before))


def add_scheme(tree):
    put(tree / "include/posenc/schemes/staircase.h", HEADER)
    put(tree / "src/schemes/staircase.cpp", SOURCE)
    put(tree / "tests/schemes/staircase_test.cpp", TEST)
    insert(tree / "include/posenc/scheme.h", '#include "posenc/prepare_options.h"', '#include "posenc/schemes/staircase.h"\n')
    insert(tree / "include/posenc/scheme.h", "Learned, ", "Staircase, ")


def add_scaling(tree):
    put(tree / "src/schemes/scalings/slower.cpp", SCALING_SOURCE)
    insert(tree / "include/posenc/schemes/rope_scaling.h", "/// The one list of scalings.", SCALING)
    insert(tree / "include/posenc/schemes/rope_scaling.h", "LinearScaling, ", "SlowerScaling, ")


def run(command, folder, environment=None):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def target_of(path):
    """The target that an object belongs to."""
    match = re.search(r"([^/]+)\.dir/", path)
    return match and match[1]


def objects_that_see(before, pattern):
    """The objects that read a header whose path matches."""
    found, name = set(), ""
    for line in run(["ninja", "-t", "deps"], before).splitlines():
        if not line.startswith(" "):
            name = line.partition(":")[0]
        elif re.search(pattern, line):
            found.add(name)
    return found


def objects_of(folder, target):
    return [name for name in run(["ninja", "-t", "inputs", target], folder).splitlines() if name.endswith(".o")]


def configure(tree, compiler, *options):
    """Nothing optimised, one unit for each room."""
    environment = {name: value for name, value in os.environ.items() if name not in ("CXXFLAGS", "CXX")}
    after = tree / "build"
    run(["cmake", "-S", str(tree), "-B", str(after), "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}",
         "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DPOSENC_CUDA=OFF", "-DPOSENC_ROOM_UNITS=1",
         "-DPOSENC_LAB=OFF", *options], tree, environment)
    return after


def compile_and_link(after, before, compiler, target, seeing, output, left_out=frozenset()):
    """Compiles the targets that some of the objects `seeing` belong to, and links `target` as it was, with the new objects in
    place of theirs. The rest comes from the library that is built: the linker takes an object of its only for what nothing
    else defines, and says so where two define the same."""
    old = objects_of(before, target)
    known = {target_of(name) for name in old}
    targets = {target_of(name) for name in old if name in seeing} - left_out | {target}
    # a source that is compiled alone is compiled again only if it sees the change
    alone = {name for name in old if "/Unity/" not in name and name not in seeing}
    alone = {name for name in alone if target_of(name) != target}
    objects = [name for name in objects_of(after, target)
               if name not in alone and (target_of(name) in targets or target_of(name) not in known)]
    if len(objects) < len(targets) - 1:
        sys.exit(f"too few objects: {objects} of {sorted(targets)}")
    run(["ninja", "-j1", *objects], after)
    link = next(line for line in reversed(run(["ninja", "-t", "commands", target], before).splitlines()) if " -o " in line)
    words = shlex.split(link.replace("&& :", "").partition("&& ")[2])
    place = words.index("-o")
    rest = [word for word in words[1:place] + words[place + 2:]
            if not (word.endswith(".o") and target_of(word) in targets | left_out)]
    run([compiler, *(str(after / name) for name in objects), *rest, "-o", str(output)], before)
    return str(output)


# Without the lab, which has a list of its own of what it trains and is a fifth of what would be compiled.
LAB = frozenset({"posenc_lab", "posenc_cli_lab"})


def build(tree, before, compiler):
    """The program, with as little compiling as can be: only what sees the list of schemes."""
    after = configure(tree, compiler, "-DPOSENC_CPU_BACKEND=OFF")
    seeing = objects_that_see(before, r"include/posenc/(scheme|schemes/rope_scaling)\.h$")
    return compile_and_link(after, before, compiler, "posenc_cli", seeing, after / "posenc", LAB)


def npy(shape, values):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(values)}d", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


class Promise(unittest.TestCase):
    program = before = folder = None

    def run_program(self, *arguments, code=0, program=None):
        done = subprocess.run([program or self.program, *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def table_file(self):
        path = self.folder / "stairs.npy"
        path.write_bytes(npy((4, 2), [0.5, -1, 2, -3, 4, -5, 6, -7]))
        return path

    def test_neither_was_there_before(self):
        self.assertIn("staircase", self.run_program("table", "staircase", code=2, program=self.before))
        self.assertNotIn("staircase", self.run_program("list", program=self.before))
        self.assertNotIn("slower", self.run_program("list", "--scalings", program=self.before))

    def test_list(self):
        self.assertRegex(self.run_program("list"), r"(?m)^staircase +bias ")
        cards = {card["scheme"]: card for card in json.loads(self.run_program("list", "--json"))}
        self.assertEqual(cards["staircase"]["defaults"], {"scheme": "staircase", "heads": 2, "steps": 4, "stride": 8})
        self.assertEqual(cards["staircase"]["trained_table"]["axes"], ["steps", "heads"])
        scalings = {card["scaling"] for card in json.loads(self.run_program("list", "--scalings", "--json"))}
        self.assertIn("slower", scalings)

    def test_help(self):
        for verb in ("table", "apply", "attend", "prove", "plot"):
            text = self.run_program(verb, "staircase", "--help")
            own = text.split("Fields of staircase:")[1].split("Options of")[0]
            self.assertEqual(re.findall(r"(?m)^  --([a-z-]+)", own), ["heads", "steps", "stride", "table"])
            self.assertIn("distances that share a row (default 8)", own)
        self.assertRegex(" ".join(self.run_program("table", "rope", "--help").split()), r"one of [^(]*\bslower\b")

    def test_near_misses(self):
        self.assertIn("did you mean 'staircase'?", self.run_program("table", "stairkase", "--queries", 1, code=2))
        self.assertIn("did you mean 'slower'?", self.run_program("table", "rope", "--scaling", "slowr", "--positions", 1,
                                                                 code=2))

    def test_table_and_json(self):
        table = self.table_file()
        arguments = ("--table", table, "--queries", "0,40", "--keys", "0:41", "--json", "--dtype", "f64")
        document = json.loads(self.run_program("table", "staircase", "--stride", 3, *arguments))
        self.assertEqual(document["scheme"], {"scheme": "staircase", "heads": 2, "steps": 4, "stride": 3})
        columns = [[0.5, 2, 4, 6], [-1, -3, -5, -7]]
        expected = [[[column[min(abs(key - query) // 3, 3)] for key in range(41)] for query in (0, 40)]
                    for column in columns]
        self.assertEqual(document["values"], expected)
        again = json.loads(self.run_program("table", json.dumps(document["scheme"]), *arguments))
        self.assertEqual(again, document)
        self.assertIn("steps", self.run_program("table", "staircase", "--steps", 5, *arguments, code=2))
        self.assertIn("the trained table is missing", self.run_program("table", "staircase", "--queries", 1, code=2))

    def test_prove(self):
        text = self.run_program("prove", "staircase")
        self.assertIn("staircase", text)
        document = json.loads(self.run_program("prove", "staircase", "--json", "--length", 100))
        (one,) = document["schemes"]
        self.assertTrue(one["random_weights"] and document["as_claimed"])
        found = {finding["property"]: finding["outcome"] for finding in one["findings"]}
        self.assertEqual((found["relative"], found["sees-order"]), ("holds", "holds"))

    def test_plot(self):
        self.assertIn("The step of each query and key", self.run_program("plot", "bias", "staircase"))
        (panel,) = json.loads(self.run_program("plot", "decay", "staircase", "--zoom", "0:40", "--json"))["panels"]
        self.assertEqual(panel["series"][0]["y"], [min(distance // 8, 3) for distance in range(40)])
        given = self.run_program("plot", "bias", "staircase", "--table", self.table_file())
        self.assertIn("head 1", given)
        self.assertIn("staircase", self.run_program("plot", "bias", "rope", code=2))
        self.assertIn("slower", self.run_program("plot", "scaling", "rope", "--scaling", "slower:times=8"))

    def test_scaling(self):
        def cosines(*arguments):
            return json.loads(self.run_program("table", *arguments, "--dtype", "f64", "--json"))["cosines"]

        slow = cosines("rope", "--dims", 8, "--scaling", "slower:times=4", "--positions", "0:400:40")
        self.assertEqual(slow, cosines("rope", "--dims", 8, "--positions", "0:100:10"))
        self.assertAlmostEqual(slow[1][0], math.cos(10), places=12)
        text = self.run_program("prove", '{"scheme":"rope","scaling":{"type":"slower","times":3}}', "--json")
        self.assertEqual(json.loads(text)["schemes"][0]["scheme"]["scaling"], {"type": "slower", "times": 3.0})
        self.assertIn("times", self.run_program("table", "rope", "--scaling", "slower:times=0", "--positions", 1, code=2))


def main():
    root, before, compiler, program = sys.argv[1:5]
    with tempfile.TemporaryDirectory(prefix="posenc-promise-") as folder:
        tree = Path(folder) / "tree"
        copy_of(root, tree)
        add_scheme(tree)
        add_scaling(tree)
        Promise.program, Promise.before, Promise.folder = build(tree, Path(before), compiler), program, Path(folder)
        done = unittest.main(argv=[sys.argv[0]], exit=False)
        return 0 if done.result.wasSuccessful() and done.result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
