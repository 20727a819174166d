"""The guide and the README show what the program prints: every `$ posenc` line is run and its output compared, and every `posenc`
line of ```sh blocks and every whole command within a text is run. tests/rules/blocks.py asks for a reason where a block is not run.

In what is shown, `> ` begins a line that was typed, a line that is only … stands for any lines, and … within a line for any
characters.
"""

import json
import math
import os
import pathlib
import re
import shlex
import shutil
import struct
import unittest

from guide_files import CONFIGS, MODEL, SHAPE, before
from program import ProgramTest, npy, parse_npy, run, safetensors
from scheme_gallery import PAGE, gallery

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
INPUTS = {"x.npy": (8, 4096, 512), "q.npy": (1, 32, 1024, 128), "k.npy": (1, 8, 1024, 128),
          "v.npy": (1, 8, 1024, 128), "wq.npy": (4096, 8)}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Those that serve or train, or name what a flag does; and those that exit with 1, since they found something.
NOT_RUN = re.compile(r"posenc (lab|explore)\b|posenc attend (?!.*(--q |--help))")
FINDS = re.compile(r"posenc (compare|diagnose)\b")


def pattern_of(shown):
    return "".join(r"(?:.*\n)*" if line == "…\n" else ".*".join(map(re.escape, line.split("…")))
                   for line in shown.splitlines(keepends=True))


def shell_lines(text):
    """Every line of ```sh blocks that runs posenc, without its comment."""
    for language, block in FENCE.findall(text):
        if language == "sh":
            yield from (re.sub(r"\s+# .*", "", line) for line in block.splitlines() if line.startswith("posenc "))


def inline_commands(text):
    """Every `posenc …` within a text that is whole: more than a verb, no … and no name in capitals to fill in."""
    for words in re.findall(r"`(posenc\s[^`]+)`", FENCE.sub("", text)):
        words = " ".join(words.split())
        if len(words.split()) > 2 and not re.search(r"…|\b[A-Z]{4,}\b|--dump$", words) and not NOT_RUN.match(words):
            yield words


class Guide(ProgramTest):
    def setUp(self):
        super().setUp()
        # zeros that take no room
        for name, shape in INPUTS.items():
            path = self.write(name, npy("f32", shape, []))
            os.truncate(path, os.path.getsize(path) + 4 * math.prod(shape))
        for name, text in CONFIGS.items():
            self.write(name, text.encode())
        self.write("before.npy", npy("f32", SHAPE, before()))
        self.succeeds("apply", "rope", "before.npy", "-o", "after.npy", "--axes", "hsd", "--layout", "interleaved", "--base", "500000",
                      "--scaling", "llama3:factor=8", "--positions", "1:33", "--quiet", cwd=self.folder)
        # both layers of an engine that has the bugs of that port
        tensors = {"before": before(), "after": parse_npy(self.read("after.npy"))[2]}
        self.write("hook.safetensors", safetensors({f"layers.{layer}.{kind}.{when}": ("F32", list(SHAPE), values)
                                                    for layer in (0, 1) for kind in "qk"
                                                    for when, values in tensors.items()}))
        # what a run of the lab leaves, of models that were hardly trained
        for scheme in ("t5", "learned", "rope"):
            self.succeeds("lab", "train", "--scheme", scheme, "--steps", "2", "--width", "16", "--heads", "4", "--size", "8", "--batch", "4",
                          "-o", f"lab-{scheme}", "--quiet", cwd=self.folder)
            os.makedirs(self.path("lab-desk"), exist_ok=True)
            os.rename(self.path(f"lab-{scheme}/text-{scheme}-1"), self.path(f"lab-desk/text-{scheme}-1"))
            shutil.rmtree(self.path(f"lab-{scheme}"))
        self.succeeds("table", "sinusoidal", "--width", "512", "--positions", "0:512", "-o", "wpe.npy", "--quiet", cwd=self.folder)
        self.write("mask.npy", npy("i64", (2, 4), [0, 0, 1, 1, 1, 1, 1, 1]))
        # a model that has two kinds of layers, and weights of projections
        os.mkdir(self.path("my-model"))
        self.write("my-model/config.json", MODEL.encode())
        self.write("model.safetensors", safetensors({"k_proj.bias": ("F32", [1024], [0.0] * 1024)}))
        # right, but 16 tokens of bf16, which are too few to tell
        bits = [struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in before()[:4 * 16 * 128]]
        self.write("short.npy", npy("bf16", (4, 16, 128), bits))
        self.succeeds("apply", "--model", "config.json", "short.npy", "-o", "short_rotated.npy", "--axes", "hsd", "--dtype", "bf16",
                      "--quiet", cwd=self.folder)
        self.given = set(self.files())

    def test_every_command(self):
        text = "".join(page.read_text("utf-8") for page in PAGES)
        blocks = re.findall(r"^```(?:console)?\n\$ posenc (.*?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 10)
        for command, shown in blocks:
            typed = "".join(re.findall(r"^> (.+\n)", shown, re.MULTILINE))
            outcome = run(*shlex.split(command), cwd=self.folder, stdin=None, input=typed.encode())
            printed = outcome.text + outcome.err
            if not re.fullmatch(pattern_of(shown), printed):
                with self.subTest(command):
                    self.assertEqual(printed, shown)
            self.clean()

    def test_the_table_of_commands(self):
        page = (ROOT / "docs/guide/command-line.md").read_text("utf-8")
        shown = dict(re.findall(r"^\| `([a-z]+)` \| (.*) \|$", page, re.MULTILINE))
        verbs = {verb["name"]: verb["summary"] for verb in json.loads(run("help", "--json").text)["verbs"]}
        self.assertEqual({name: shown.get(name) for name in verbs}, verbs)

    def test_the_gallery_is_current(self):
        self.assertEqual(PAGE.read_text("utf-8"), gallery(), "run tests/cli/scheme_gallery.py")

    def test_every_line(self):
        ran = 0
        for page in PAGES:
            text = page.read_text("utf-8")
            for line in dict.fromkeys([*shell_lines(text), *inline_commands(text)]):
                with self.subTest(page=page.name, line=line):
                    words = shlex.split(line)[1:]
                    if words[:2] == ["lab", "train"]:  # the same, but short
                        words += ["--steps", "2"] if "--steps" not in words else []
                        words[words.index("--steps") + 1] = "2"
                    outcome = run(*words, cwd=self.folder)
                    self.assertIn(outcome.code, (0, 1) if FINDS.match(line) else (0,), outcome.text + outcome.err)
                    ran += 1
            self.clean()
        self.assertGreaterEqual(ran, 60)

    def clean(self):
        for name in set(self.files()) - self.given:
            path = self.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


if __name__ == "__main__":
    unittest.main()
