"""Adds a kind of bias term to a copy of the tree, as CONTRIBUTING.md says, and a scheme that has it, and looks for both in the
program, in C and in Python: forward and backward, on the reference and on the CPU.

add_a_term.py ROOT BUILD COMPILER PROGRAM PYTHON

BUILD is where the tree was built, with the library static: what of it never sees the list of terms is linked as it is.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from add_a_scheme import LAB, compile_and_link, configure, copy_of, insert, npy, objects_of, objects_that_see, put, run

TERM = r"""#pragma once

#include <vector>

#include "posenc/terms/numbered.h"

namespace posenc {

/// −depths[h] · δ² / (1 + δ²). One axis.
struct Wells {
  std::vector<double> depths;  // one for each head
};
template <> struct NumberedTerm<6> { using Type = Wells; };

}  // namespace posenc
"""

MODULE = r"""#pragma once

#include <cstddef>

#include "terms/tables.h"
#include "terms/term.h"

namespace posenc::terms {

template <> struct Term<Wells> : TermDefaults {
  static constexpr std::string_view name = "wells";

  static void check(std::string_view verb, const Wells& source, std::int64_t heads) {
    check_size(verb, "depths", source.depths.size(), static_cast<std::size_t>(heads));
  }
  static Wells some_heads(const Wells& all, std::int64_t, const HeadRange& range) {
    const auto first = all.depths.begin() + range.first;
    return {{first, first + range.count}};
  }
  static Cost cost(const Wells&, const CostSizes& sizes) { return {.operations = 4 * sizes.keys, .numbers = 1}; }
  static double shape_at(const Score& at) {
    const auto distance = static_cast<double>(at.distance());
    return -distance * distance / (1 + distance * distance);
  }
  static double element(const Wells& source, std::int64_t, const Score& at) {
    return source.depths[static_cast<std::size_t>(at.h)] * shape_at(at);
  }
  static Extents parameters(const Wells&, std::int64_t heads) { return {heads}; }
  static std::int64_t head_parameters(const Wells&, std::int64_t) { return 1; }
  static void add_gradient(const Wells&, std::int64_t, const Score& at, double ds, double* sums) {
    sums[0] += ds * shape_at(at);
  }
};

}  // namespace posenc::terms
"""

SCHEME = r"""#pragma once

#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"

namespace posenc {

/// bias(h, m, n) = −depth_h · (n − m)² / (1 + (n − m)²)
struct Well {
  static constexpr std::string_view name = "well";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score - depth_h*(n-m)^2 / (1 + (n-m)^2)";
  static constexpr std::string_view used_by = "a test";

  std::vector<double> depths = list_of(1.0);

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("depths", &Well::depths, "one per head (default 1)");
  }
  bool operator==(const Well&) const = default;
};

Bias prepare(const Well& scheme, const PrepareOptions& options = {});

}  // namespace posenc
"""

SOURCE = r"""#include "posenc/schemes/well.h"

#include "schemes/check.h"

namespace posenc {

Bias prepare(const Well& scheme, const PrepareOptions&) {
  const auto heads = static_cast<std::int64_t>(scheme.depths.size());
  schemes::check_between(Well::name, "the number of depths", heads, 1, schemes::kHeadLimit);
  return {heads, Wells{scheme.depths}};
}

}  // namespace posenc
"""

# Attention in C over 2 heads, 5 tokens and 4 features, and its gradients: out, the gradient of the depths, or an error.
C_PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "posenc/posenc_c.h"

static int done(int status) {
  if (status != POSENC_OK) printf("%s\n", posenc_error());
  return status == POSENC_OK;
}

int main(int count, char** words) {
  static double q[40], k[40], v[40], d_out[40], out[40], depths[2];
  static int64_t shape[] = {2, 5, 4}, heads[] = {2};
  if (count != 3 || !done(posenc_force_backend(words[1]))) return 1;
  for (int i = 0; i < 40; ++i) q[i] = sin(0.7 * (i + 1)), k[i] = sin(1.4 * (i + 1)), v[i] = sin(2.1 * (i + 1)), d_out[i] = cos(i);
  posenc_tensor tensors[] = {{q, {1, 0}, 3, {2, 64, 1}, shape, NULL, 0}, {k, {1, 0}, 3, {2, 64, 1}, shape, NULL, 0},
                             {v, {1, 0}, 3, {2, 64, 1}, shape, NULL, 0}, {d_out, {1, 0}, 3, {2, 64, 1}, shape, NULL, 0},
                             {out, {1, 0}, 3, {2, 64, 1}, shape, NULL, 0}, {depths, {1, 0}, 1, {2, 64, 1}, heads, NULL, 0}};
  posenc_form* form = NULL;
  if (!done(posenc_prepare(words[2], NULL, &form))) return 1;
  posenc_attention_options options = POSENC_INIT(posenc_attention_options);
  options.position = form;
  options.causal = 1;
  if (!done(posenc_attention(&tensors[4], &tensors[0], &tensors[1], &tensors[2], &options, NULL))) return 1;
  posenc_attention_gradients gradients = POSENC_INIT(posenc_attention_gradients);
  posenc_attention_inputs inputs = POSENC_INIT(posenc_attention_inputs);
  gradients.parameters = &tensors[5];
  inputs.q = &tensors[0], inputs.k = &tensors[1], inputs.v = &tensors[2];
  if (!done(posenc_attention_backward(&gradients, &tensors[3], &inputs, &options, NULL))) return 1;
  for (int i = 0; i < 40; ++i) printf("%.17g ", out[i]);
  printf("%.17g %.17g\n", depths[0], depths[1]);
  posenc_form_free(form);
  return 0;
}
"""

PYTHON = r"""
import json, math, sys
import numpy, posenc

form = posenc.prepare(posenc.Well(depths=json.loads(sys.argv[1])["depths"]))
assert form.heads == posenc.prepare(sys.argv[1]).heads == 2
wave = lambda rate, turn=math.sin: numpy.array([turn(rate * (i + 1)) for i in range(40)], sys.argv[2]).reshape(2, 5, 4)
q, k, v, d_out = wave(0.7), wave(1.4), wave(2.1), numpy.array([math.cos(i) for i in range(40)], sys.argv[2]).reshape(2, 5, 4)
depths = numpy.zeros(2)
out = posenc.attention(q, k, v, form, causal=True)
posenc.attention_backward(d_out, q, k, v, form, causal=True, d_parameters=depths)
table = posenc.bias(form, 3, 3, dtype="f64")
print(json.dumps([numpy.asarray(out, "f8").ravel().tolist(), depths.tolist(), numpy.asarray(table, "f8").tolist()]))
"""

DEPTHS = [1.5, -0.5]


def add_term(tree):
    put(tree / "include/posenc/terms/wells.h", TERM)
    put(tree / "src/terms/wells/wells.h", MODULE)
    insert(tree / "include/posenc/terms/list.h", "\n#undef POSENC_QUOTED", "#include POSENC_TERM(wells)\n")
    put(tree / "include/posenc/schemes/well.h", SCHEME)
    put(tree / "src/schemes/well.cpp", SOURCE)
    insert(tree / "include/posenc/scheme.h", '#include "posenc/prepare_options.h"', '#include "posenc/schemes/well.h"\n')
    insert(tree / "include/posenc/scheme.h", "Learned, ", "Well, ")


def well(distance):
    return -distance**2 / (1 + distance**2)


def attention(depths):
    """[2, 5, 4], causal, by the formula."""
    q, k, v = ([math.sin(rate * (i + 1)) for i in range(40)] for rate in (0.7, 1.4, 2.1))
    out = []
    for h in range(2):
        at = lambda x, t: x[(h * 5 + t) * 4:(h * 5 + t + 1) * 4]
        for m in range(5):
            scores = [sum(a * b for a, b in zip(at(q, m), at(k, n))) / 2 + depths[h] * well(m - n) for n in range(m + 1)]
            powers = [math.exp(score) for score in scores]
            out += [sum(p * at(v, n)[f] for n, p in enumerate(powers)) / sum(powers) for f in range(4)]
    return out


def gradient(step=1e-6):
    """Of the depths, for d_out = cos(i), by differences."""
    def loss(h, by):
        return sum(x * math.cos(i) for i, x in enumerate(attention([d + by * (i == h) for i, d in enumerate(DEPTHS)])))
    return [(loss(h, step) - loss(h, -step)) / (2 * step) for h in range(2)]


class Promise(unittest.TestCase):
    program = before = folder = library = root = compiler = python = package = None
    scheme = json.dumps({"scheme": "well", "depths": DEPTHS})

    def run_program(self, *arguments, code=0, program=None):
        done = subprocess.run([program or self.program, *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def expect(self, found, expected, places):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertAlmostEqual(a, b, places=places)

    def test_it_was_not_there_before(self):
        self.assertNotIn("\nwell ", self.run_program("list", program=self.before))

    def test_table_and_json(self):
        arguments = ("--queries", "0:3", "--keys", "0:5", "--json", "--dtype", "f64")
        document = json.loads(self.run_program("table", "well", "--depths", "1.5,-0.5", *arguments))
        self.assertEqual(document["scheme"], {"scheme": "well", "depths": DEPTHS})
        self.assertEqual(document["values"], [[[depth * well(n - m) for n in range(5)] for m in range(3)] for depth in DEPTHS])
        self.assertEqual(json.loads(self.run_program("table", self.scheme, *arguments)), document)

    def test_attend(self):
        for name, rate in zip("qkv", (0.7, 1.4, 2.1)):
            (self.folder / f"{name}.npy").write_bytes(npy((2, 5, 4), [math.sin(rate * (i + 1)) for i in range(40)]))
        files = [word for name in "qkv" for word in (f"--{name}", self.folder / f"{name}.npy")]
        for backend in ("reference", "cpu"):
            out = self.folder / f"{backend}.npy"
            self.run_program("attend", self.scheme, *files, "-o", out, "--causal", "--backend", backend, "--quiet")
            self.expect(memoryview(out.read_bytes()[-320:]).cast("d").tolist(), attention(DEPTHS), 12)

    def test_prove_and_plot(self):
        document = json.loads(self.run_program("prove", "well", "--json", "--length", 100))
        self.assertTrue(document["as_claimed"])
        self.assertIn("well", self.run_program("plot", "bias", "well"))

    def test_c(self):
        (self.folder / "main.c").write_text(C_PROGRAM)
        compiler = self.compiler.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")
        run([compiler, "-std=c11", f"-I{self.root}/include", "main.c", self.library, "-lm", "-o", "main"], self.folder)
        for backend in ("reference", "cpu"):
            found = subprocess.run([self.folder / "main", backend, self.scheme], capture_output=True, text=True,
                                   env={"LD_LIBRARY_PATH": str(Path(self.library).parent)}, timeout=120)
            self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
            numbers = [float(word) for word in found.stdout.split()]
            self.expect(numbers[:40], attention(DEPTHS), 12)
            self.expect(numbers[40:], gradient(), 7)

    def test_python(self):
        if subprocess.run([self.python, "-c", "import numpy"], capture_output=True).returncode != 0:
            self.skipTest("no numpy")
        (self.folder / "main.py").write_text(PYTHON)
        shutil.copytree(self.package, self.folder / "python/posenc", ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "LD_PRELOAD": self.library, "PYTHONPATH": str(self.folder / "python")}
        # the classes of schemes follow from the library's list
        generate = [self.python, "-B", f"{self.root}/python/src/generate_schemes.py", self.folder / "python/posenc/schemes.py"]
        made = subprocess.run(generate, capture_output=True, text=True, env=environment, timeout=120)
        self.assertEqual(made.returncode, 0, made.stderr)
        for dtype, places in (("f8", 7), ("f4", 5)):  # f4: the tiles of the CPU
            found = subprocess.run([self.python, "-B", self.folder / "main.py", self.scheme, dtype], capture_output=True,
                                   text=True, env=environment, timeout=120)
            self.assertEqual(found.returncode, 0, found.stderr)
            out, depths, table = json.loads(found.stdout)
            self.expect(out, attention(DEPTHS), places)
            self.expect(depths, gradient(), places)
            self.expect(table[0][0], [DEPTHS[0] * well(n) for n in range(3)], places)


def main():
    root, before, compiler, program, python = sys.argv[1:6]
    with tempfile.TemporaryDirectory(prefix="posenc-promise-") as folder:
        tree = Path(folder) / "tree"
        copy_of(root, tree)
        add_term(tree)
        before = Path(before)
        after = configure(tree, compiler)
        seeing = objects_that_see(before, r"/src/terms/|include/posenc/scheme\.h$") | \
            {name for name in objects_of(before, "posenc_c") if "/posenc_forms.dir/" in name}
        Promise.library = compile_and_link(after, before, compiler, "posenc_c", seeing, after / "libposenc_c.so.0",
                                           LAB | {"posenc_cuda"})
        Promise.program = compile_and_link(after, before, compiler, "posenc_cli", seeing, after / "posenc",
                                           LAB | {"posenc_cuda"})
        Promise.before, Promise.folder, Promise.root, Promise.compiler = program, Path(folder), root, compiler
        Promise.python, Promise.package = python, before / "python/posenc"
        done = unittest.main(argv=[sys.argv[0]], exit=False)
        return 0 if done.result.wasSuccessful() and done.result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
