"""The rules themselves: each finds the fault it is for, names its file and line, and is quiet without it."""

import json
import tempfile
import unittest
from pathlib import Path

import blocks
import errors
import layers
import library_symbols
import links
import names
import no_exceptions
import pipes
import places
import readme
import sizes
import tree
import words


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text=""):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def problems(self, rule):
        return rule.check(self.root).problems

    def test_layers(self):
        self.write("include/posenc/scheme.h")
        self.write("include/posenc/forms.h")
        self.write("src/numerics/wave.h")
        self.write("src/kernels/good.cpp", '#include "posenc/forms.h"\n#include "numerics/wave.h"\n#include <vector>\n'
                                           '// #include "posenc/scheme.h"\n')
        self.assertEqual(self.problems(layers), [])
        self.write("src/kernels/bad.cpp", '\n#include "posenc/scheme.h"\n')
        self.assertEqual(self.problems(layers),
                         ["src/kernels/bad.cpp:2: src/kernels/ may not include include/posenc/scheme.h"])

    def test_pipes(self):
        self.write("good", "#!/usr/bin/env bash\nset -euo pipefail\ngot=$(./list)\n[[ $got == *one* ]] || grep -q one log\n"
                           "./list | sed -n 1p\n")
        self.write("other.sh", "#!/bin/sh\nset -eu\n./list | head -n 1\n")
        self.assertEqual(self.problems(pipes), [])
        self.write("bad.sh", "#!/usr/bin/env bash\nset -euo pipefail\n./list | grep -qx one\n./list |& head -n 1\n./list | sed 2q\n"
                             "./list | sed '/one/q'\n")
        self.assertEqual([problem.split(": it")[0] for problem in self.problems(pipes)],
                         ["bad.sh:3: | grep", "bad.sh:4: | head", "bad.sh:5: | sed", "bad.sh:6: | sed"])

    def test_layers_by_relative_path(self):
        self.write("src/kernels/x.h")
        self.write("src/schemes/bad.cpp", '#include "../kernels/x.h"\n')
        self.assertEqual(self.problems(layers),
                         ["src/schemes/bad.cpp:1: src/schemes/ may not include src/kernels/x.h"])

    def test_layers_of_dependencies(self):
        self.write("src/kernels/cpu/good.cpp", "#include <hwy/highway.h>\n#include <thread>\n")
        self.assertEqual(self.problems(layers), [])
        self.write("src/kernels/reference/bad.cpp", "#include <thread>\n#include <hwy/highway.h>\n")
        self.assertEqual([problem.split(": ")[0] for problem in self.problems(layers)],
                         ["src/kernels/reference/bad.cpp:1", "src/kernels/reference/bad.cpp:2"])

    def test_layers_of_a_room_nobody_knows(self):
        self.write("attic/x.cpp", "#include <vector>\n")
        self.assertEqual(self.problems(layers), ["attic/x.cpp:1: in no room that the table of layers knows"])

    def test_words(self):
        self.write("cli/good.cpp", '// stands\n#include "x stands.h"\nconst char* a = "rotary dimensions per head";\n')
        self.write("content/topics.json", '{"title": "the bias depends only on the distance"}')
        self.write("docs/guide/good.md", "A frequency in turns per position.\nIt stands for itself.\n")
        self.write("docs/decisions/0001.md", "what stands there\n")
        self.write("include/posenc/good.h", "/* a rotation\n   of pairs */ int a;  ///< stands for itself\nint b;\n")
        self.write("python/posenc/good.py", '"""Raises: Error, in 85% of cases."""\n')
        self.assertEqual(self.problems(words), [])
        self.write("python/posenc/bad.py", '"""Throws: Error.\n\nThe same bytes."""\n')
        self.write("docs/guide/bad.md", "at 85 % of it\na layer is an error\nthe score of two tokens depends only on their distance\n"
                                        "you practise\nexists (--force replaces it)\nq is multiplied with k\nall features of a head\n"
                                        "a shape that does not fit\noptions, as attention has them\na Llama of Meta\ni in place of 2i\n")
        self.write("cli/bad.cpp", '\nconst char* a = "features that "\n                "are turned";\n')
        self.write("src/forms/bad.cpp", 'raise("a key stands here");\n')
        self.write("content/bad.json", '{"a": 1,\n "b": ["a matter of distance"]}')
        self.write("explorer/src/bad.ts", "const a = 'word';  // stands\nconst b = 'wherever a word stands';\n")
        self.write("README.md", "fine\nwhat is said of it\n")
        self.write("include/posenc/bad.h", "int a;  ///< where it stands\n/* fine\n   a matter of distance */\n")
        self.assertEqual([problem.split(": ")[0] for problem in self.problems(words)],
                         ["README.md:2", "cli/bad.cpp:2", "content/bad.json:2", *(f"docs/guide/bad.md:{line}" for line in range(1, 12)),
                          "explorer/src/bad.ts:2", "include/posenc/bad.h:1", "include/posenc/bad.h:3", "python/posenc/bad.py:1",
                          "python/posenc/bad.py:3", "src/forms/bad.cpp:1"])

    def test_names(self):
        self.write("src/commonplace.cpp", "namespace posenc::numerics {}\n// namespace util\n")
        self.assertEqual(self.problems(names), [])
        self.write("src/rotate_utils.h", "\nnamespace posenc::helpers {}\n")
        self.write("src/misc/x.h")
        self.assertEqual(len(self.problems(names)), 3)
        self.assertIn('src/rotate_utils.h:2: namespace posenc::helpers holds the word "helpers"', self.problems(names))

    def test_sizes(self):
        self.write("src/long.cpp", "\n" * 450)
        self.write("tests/long_test.cpp", "\n" * 700)
        self.assertEqual(self.problems(sizes), [])
        self.write("src/long.cpp", "\n" * 451)
        self.write("tests/long_test.cpp", "\n" * 701)
        self.assertEqual(self.problems(sizes), ["src/long.cpp:451: 451 lines; the limit is 450",
                                                "tests/long_test.cpp:701: 701 lines; the limit is 700"])
        (self.root / "src/long.cpp").unlink()
        (self.root / "tests/long_test.cpp").unlink()
        self.write("cmake/long.cmake", "\n" * 451)
        self.write("tests/long.c", "\n" * 701)  # those of C and JavaScript may be longer
        self.assertEqual(self.problems(sizes), ["cmake/long.cmake:451: 451 lines; the limit is 450"])
        (self.root / "cmake/long.cmake").unlink()
        for number in range(40):
            self.write(f"cli/verbs/verb_{number}.cpp")
        self.assertEqual(self.problems(sizes), [])
        self.write("cli/verbs/one_more.cpp")
        self.assertEqual(self.problems(sizes), ["cli/verbs:1: 41 files; the limit is 40"])

    def test_sizes_of_functions(self):
        def cpp(lines):  # a table and a struct may be longer
            body = "  if (x) { f([] { return '{'; }); }  // }\n" + "  x();\n" * (lines - 3)
            return ("namespace n {\nconstexpr int kTable[] = {\n" + "1,\n" * 120 + "};\nstruct S {\n"
                    "  int a() const { return 1; }\n" + "  int b;\n" * 120 + "};\n"
                    "extern \"C\" __global__ void __launch_bounds__(1) long_one(int x) {\n" + body + "}\n}  // namespace n\n")

        def python(lines):
            return "def long_one():\n" + "    x()\n" * (lines - 1)

        for name, source, line in (("src/a.cpp", cpp, 247), ("src/a.c", cpp, 247), ("src/a.ts", cpp, 247), ("src/a.py", python, 1)):
            self.write(name, source(100))
            self.write("tests/" + Path(name).name, source(101))  # a test may be longer
            self.assertEqual(self.problems(sizes), [])
            self.write(name, source(101))
            self.assertEqual(self.problems(sizes),
                             [f"{name}:{line}: long_one has 101 lines; the limit of a function is 100"])
            (self.root / name).unlink()

    def test_errors(self):
        self.write("src/good.cpp", 'static_assert(true);\nraise("do not throw it"); // throw\nint f() noexcept;\n')
        self.write("src/forms/error.cpp", "throw Error(message);\n")
        self.assertEqual(self.problems(errors), [])
        self.write("src/bad.cpp", "\nthrow 1;\nassert(x);\n")
        self.assertEqual([problem.split(": ")[0] for problem in self.problems(errors)],
                         ["src/bad.cpp:2", "src/bad.cpp:3"])

    def test_places(self):
        self.write("README.md", "https://github.com/x and docs/work/x, ../work, $root/home\n")
        self.assertEqual(self.problems(places), [])
        slash = "/"
        self.write("docs/bad.md", f"see {slash}home/me/x\nhttps:{slash}/registry.local:8080/x\n`{slash}work`\n")
        self.assertEqual([problem.split(": ")[0] for problem in self.problems(places)],
                         ["docs/bad.md:1", "docs/bad.md:2", "docs/bad.md:3"])

    def test_links(self):
        self.write("README.md", "[a](docs/index.md#two-words) `[b](no.md)` [c](https://github.com/x)\n```\n[d](no.md)\n```\n")
        self.write("CONTRIBUTING.md")
        self.write("docs/index.md", "# Two words?\n[guide](guide/a.md) [here](#two-words)\n")
        self.write("docs/guide/a.md", "[up](../../README.md)\n")
        self.assertEqual(self.problems(links), [])
        self.write("docs/guide/b.md", "fine\n[x](no.md) [y](a.md#no)\n")
        self.assertEqual(self.problems(links), ["docs/guide/b.md:2: no.md: there is no such file",
                                                "docs/guide/b.md:2: a.md#no: there is no such heading",
                                                "docs/index.md:1: guide/b.md is not linked"])

    def test_nothing_seen_is_a_failure(self):
        with self.assertRaises(SystemExit) as ended:
            layers.check(self.root).finish()
        self.assertEqual(ended.exception.code, 1)

    def test_symbols(self):
        for symbol in ("printf", "__printf_chk", "puts", "abort", "exit", "_exit", "__assert_fail", "std::cout",
                       "fmt::v9::vprint(std::FILE*)"):
            self.assertRegex(symbol, library_symbols.REFUSED)
        for symbol in ("snprintf", "std::terminate()", "posenc::raise(std::string const&)", "memcpy",
                       "posenc::print_width()", "fmt::v9::detail::assert_fail(char const*, int, char const*)"):
            self.assertNotRegex(symbol, library_symbols.REFUSED)
        for symbol in ("pthread_create", "fopen", "read", "__cxa_throw", "std::thread::join()"):
            self.assertRegex(symbol, no_exceptions.REFUSED)
        for symbol in ("posenc::read_npy(int)", "getenv", "std::__throw_length_error(char const*)"):
            self.assertNotRegex(symbol, no_exceptions.REFUSED)

    def test_comments_are_blanked_and_lines_stay(self):
        code = tree.without_comments('a /* b\n c */ "d // e" f // g\n1\'000 \'"\' h')
        self.assertEqual(code.split(), ["a", "f", "1'000", "h"])
        self.assertEqual(code.count("\n"), 2)

    def test_readme_commands(self):
        text = ("```sh\ngit clone x\n./run list    # all\n./run table\n```\n\n```text\n0 1\n…\n```\n"
                "```console\n$ ./run a\nout\n$ ls\nfile\n```\n```sh not run: too long\n./run b\n```\n```sh\ncmake --install c\n```\n")
        self.assertEqual(list(readme.commands(text)),
                         [(3, "./run list", None), (4, "./run table", ["0 1", "…"]), (12, "./run a", ["out"]), (21, "cmake --install c", None)])

    def test_blocks_that_nobody_runs(self):
        self.write("tests/a_test.sh", "# runs what good.md shows\n")
        self.write("README.md", "```sh\n./run list\nposenc list\ncmake --install build/release\n```\n")
        self.write("python/README.md", "```python\nx\n```\n```text\n1\n```\n")
        self.write("docs/guide/good.md", "```cpp\nint a;\n```\n```\n$ posenc list\nrope\n```\n```console\n$ posenc list\n```\n"
                   "```sh run by tests/a_test.sh\nmake it\n```\n```c not run: it needs another machine\nint a;\n```\n")
        self.assertEqual(self.problems(blocks), [])
        self.write("docs/guide/bad.md", "```sh\nposenc list\nls\n```\n```\n$ ls\n```\n```python\nx\n```\n\n```text\n1\n```\n```cmake\nx\n```\n"
                   "```sh not run\nx\n```\n```sh run by tests/b_test.sh\nx\n```\n```sh run by tests/a_test.sh\nx\n```\n```sh skip\nx\n```\n")
        self.write("README.md", "```sh\nmake install\n```\n\n    posenc list\n    a = b\n")
        self.write("src/a.cpp", "int a;\nint b;\n")
        self.write("CONTRIBUTING.md", "In `src/a.cpp`:\n```diff\n+int b;\n-int c;\n```\n```diff\n+int c;\n```\n")
        self.write("packaging/npm/README.md", "```js\nx\n```\n")
        self.write("packaging/README.md", "```js\nx\n```\n```diff\n+x\n```\n")
        self.assertEqual(self.problems(blocks), [
            "README.md:1: no test runs 'make install'",
            "README.md:5: no test runs an indented command: put it into a ```sh block",
            "CONTRIBUTING.md:6: not in src/a.cpp: 'int c;'",
            "packaging/README.md:1: no test runs this block",
            "packaging/README.md:4: no file is named above this diff",
            "docs/guide/bad.md:1: no test runs 'ls'",
            "docs/guide/bad.md:5: no test runs this block",
            "docs/guide/bad.md:12: no test runs this block",
            "docs/guide/bad.md:15: no test runs this block",
            "docs/guide/bad.md:18: say why: ```sh not run: REASON",
            "docs/guide/bad.md:21: there is no tests/b_test.sh",
            "docs/guide/bad.md:24: tests/a_test.sh does not name bad.md",
            "docs/guide/bad.md:27: 'skip': expected 'run by FILE' or 'not run: REASON'"])

    def test_snippets_are_those_of_the_readme_and_the_guide(self):
        self.write("README.md", "# a\n```cpp\nint a;\n```\n```sh\nls\n```\n")
        self.write("docs/guide/page.md", "```cpp\nint b;\n```\n")
        found = [(page, block.line, block.text) for page, block in readme.snippets(self.root)]
        self.assertEqual(found, [("README.md", 3, "int a;\n"), ("docs/guide/page.md", 2, "int b;\n")])
        both = list(readme.snippets(self.root))
        self.assertEqual(readme.together(both), [both])
        for line in ('#line 3 "README.md"\nint a;', '#line 2 "docs/guide/page.md"\nint b;'):
            self.assertIn(line, readme.program_of(both))

    def test_snippets_with_other_includes_are_another_program(self):
        self.write("README.md", "```cpp\nint a;\n```\n```cpp\n#include <map>\nint b;\n```\n```cpp\nint main() {}\n```\n")
        self.write("docs/guide/page.md", "```cpp\nint c;\n```\n")
        found = list(readme.snippets(self.root))
        self.assertEqual(readme.together(found), [[found[0], found[3]], [found[1]], [found[2]]])

    def test_rooms_are_what_the_build_compiles_together(self):
        for path in ("src/forms/a.cpp", "src/forms/b.cpp", "src/kernels/cpu/c.cpp", "src/kernels/cpu/d.cpp",
                     "src/kernels/e.cpp", "cli/verbs/f.cpp", "cli/main.cpp", "src/kernels/cuda/g.cpp",
                     "src/attention/cuda/h.cpp", "src/kernels/wasm/i.cpp"):
            self.write(path)
        named = [(target, [path.name for path in group]) for target, group in tree.rooms(self.root)]
        self.assertCountEqual(named, [("posenc_cli_verbs", ["f.cpp"]), ("posenc_forms", ["a.cpp", "b.cpp"]),
                                      ("posenc_kernels_cpu", ["c.cpp"]), ("posenc_kernels_cpu", ["d.cpp"]),
                                      ("posenc_kernels", ["e.cpp", "i.cpp"]), ("posenc_cuda", ["h.cpp", "g.cpp"])])

    def test_readme_output(self):
        self.assertTrue(readme.matches(["a", "…", "took … ms"], "a  \nb\nc\ntook 3 ms\n"))
        self.assertFalse(readme.matches(["a", "b"], "a\nb\nc\n"))
        self.assertFalse(readme.matches(["a.b"], "axb\n"))


if __name__ == "__main__":
    unittest.main()
