"""Adds an option of attention to a copy of the tree, as decision 30 says, and looks for it in C, in Python and in an engine.

add_an_option.py ROOT BUILD COMPILER

BUILD is where the tree was built, with the library static: what never sees the list of options is linked as it is.
"""

import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MEMBER = "  bool blurs = false;\n"
LINE = '    visit("blurs", &Self::blurs, "scores are blurred");\n'

# The list as C has it, and what the host's engine says to the new option.
PROGRAM = r"""
#include <cstdio>

#include "attention/plan/call.h"
#include "c_api/option_kinds.h"

using namespace posenc;

int main() {
  const char* separator = "[";
  c_api::each_in_c([&]<class T>(const char* name, T AttentionOptions::*, const char* help, std::size_t offset) {
    std::printf("%s[\"%s\", %d, \"%s\", %zu]", separator, name, static_cast<int>(c_api::InC<T>::kKind), help, offset);
    separator = ", ";
  });
  std::printf("]\n");
  float x[4] = {};
  const ConstTensorView tensor = view(static_cast<const float*>(x), {2, 2});
  AttentionOptions options;
  options.causal = true;
  attend::call_of("attention", {}, {tensor, tensor, tensor}, options);
  options.blurs = true;
  try {
    attend::call_of("attention", {}, {tensor, tensor, tensor}, options);
    std::printf("taken\n");
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}
"""


def run(command, folder, code=0):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}")
    return done.stdout + done.stderr


def insert(path, before, text):
    """Puts text before the one place where `before` stands."""
    whole = path.read_text()
    if whole.count(before) != 1:
        sys.exit(f"{path}: '{before}' stands there {whole.count(before)} times")
    path.write_text(whole.replace(before, text + before))


class Promise(unittest.TestCase):
    root = build = compiler = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tree = Path(cls.folder.name)
        for part in ("include", "src", "cmake", "python/src"):
            shutil.copytree(cls.root / part, cls.tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        cls.header = cls.tree / "include/posenc/posenc_c.h"
        options = cls.tree / "include/posenc/attention.h"
        insert(options, "  TensorView weights = {}, logsumexp = {};", MEMBER)
        insert(options, "  }\n};\n\n/// out = softmax(scale", LINE)
        cls.compile = [cls.compiler, "-std=c++20", "-O0", "-Iinclude", "-Isrc"]
        cls.stale = run([*cls.compile, "-fsyntax-only", "src/c_api/attention.cpp"], cls.tree, 1)
        run([*cls.compile, "cmake/c_options.cpp", "-o", "c_options"], cls.tree)
        cls.complaint = run(["./c_options", cls.header], cls.tree, 1)
        run(["./c_options", cls.header, "--write"], cls.tree)
        run(["./c_options", cls.header], cls.tree)
        (cls.tree / "main.cpp").write_text(PROGRAM)
        link = shlex.split(run(["ninja", "-t", "commands", "posenc_cli"], cls.build).splitlines()[-1])
        libraries = [cls.build / word for word in link if word.endswith(".a") or ".so" in word] + \
                    [word for word in link if word.startswith("-l")]
        run([*cls.compile, "main.cpp", "src/attention/plan/call.cpp", *libraries, "-o", "main"], cls.tree)
        listed, cls.answer = run(["./main"], cls.tree).strip().splitlines()
        cls.listed = json.loads(listed)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_header_of_c(self):
        self.assertIn("posenc_c.h differs from AttentionOptions::fields", self.stale)  # the library says what is missing
        self.assertIn("posenc_attention_options differs from AttentionOptions::fields", self.complaint)
        text = self.header.read_text()
        self.assertIn("  int32_t blurs; /* scores are blurred */\n} posenc_attention_options;\n", text)
        run([*self.compile, "-fsyntax-only", "src/c_api/attention.cpp"], self.tree)
        run([*self.compile, "-fsyntax-only", "src/c_api/layer.cpp"], self.tree)
        *others, added = self.listed
        self.assertEqual(added[:3], ["blurs", 0, "scores are blurred"])
        self.assertEqual(added[3], max(offset for *_, offset in others) + 8)  # after the last, which is a pointer

    def test_keywords_of_python(self):
        spec = importlib.util.spec_from_file_location("generate", self.tree / "python/src/generate_attention.py")
        generate = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generate)

        class Extension:
            options = staticmethod(lambda: [tuple(field[:3]) for field in self.listed])

        text = generate.module(Extension)
        compile(text, "keywords.py", "exec")
        self.assertEqual(text.count("blurs: bool = False"), 3)  # attention, its gradients and plans
        self.assertEqual(text.count('"blurs": blurs'), 3)
        self.assertIn("    blurs: scores are blurred.\n", text)

    def test_an_engine_that_does_not_know_it(self):
        self.assertEqual(self.answer, "attention: the host does not support the option blurs")


if __name__ == "__main__":
    Promise.root, Promise.build, Promise.compiler = (Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3])
    unittest.main(argv=sys.argv[:1])
