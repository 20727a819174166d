"""Completions and the manual page, made from the table of commands; pages on schemes and families; --color."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from program import ProgramTest, run

class ShellOnTerminal:
    """A shell that somebody types into."""

    def __init__(self, command, environment):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
                                        start_new_session=True)
        os.close(theirs)
        self.read, self.unseen = b"", ""

    def types(self, text):
        os.write(self.ours, text.encode())

    def sees(self, words):
        limit = time.monotonic() + 60
        while words not in self.unseen:
            if not select.select([self.ours], [], [], max(0, limit - time.monotonic()))[0]:
                raise AssertionError(f"{words!r} did not appear: {self.unseen!r}")
            # the bell, and codes that move the cursor, may come within a word
            self.read += os.read(self.ours, 4096)
            self.unseen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x00-\x08\x0b\x0c\x0e-\x1f]", "",
                                 self.read.decode(errors="replace"))
        self.read, self.unseen = b"", ""

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


SHELLS = {"--bash": ("bash", "-n"), "--zsh": ("zsh", "-n"), "--fish": ("fish", "--no-execute")}


class Completions(ProgramTest):
    def script(self, form):
        return self.write(form.strip("-"), self.succeeds("help", form).out)

    def test_the_shells_can_read_them(self):
        for form, (shell, flag) in SHELLS.items():
            path = self.script(form)
            if shell != "bash" and shutil.which(shell) is None:
                continue
            done = subprocess.run([shell, flag, path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def completed(self, *words):
        script = (f"source {self.script('--bash')}; COMP_WORDS=({' '.join(map(repr, words))}); "
                  f"COMP_CWORD={len(words) - 1}; _posenc; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.completed("posenc", "tab"), ["table"])
        self.assertEqual(self.completed("posenc", "table", "sandw"), ["sandwich"])
        self.assertEqual(self.completed("posenc", "table", "rope", "--bas"), ["--base"])
        self.assertEqual(self.completed("posenc", "table", "rope", "--rope-th"), ["--rope-theta"])
        self.assertIn("--heads", self.completed("posenc", "attend", "alibi", "--he"))
        self.assertEqual(self.completed("posenc", "table", "rope", "--layout", "int"),
                         ["interleaved", "interleaved-to-halves"])
        self.assertEqual(self.completed("posenc", "inspect", "--eng"), ["--engine"])
        self.assertEqual(self.completed("posenc", "inspect", "conf"), [])  # bash then completes files

    @unittest.skipIf(shutil.which("zsh") is None, "zsh is not installed")
    def test_zsh_completes(self):
        """As zsh does it: the file is found in $fpath by compinit, and loaded when Tab is first pressed."""
        os.mkdir(self.path("functions"))
        os.rename(self.script("--zsh"), self.path("functions/_posenc"))
        for words, expected in (("tab", "table"), ("table sandw", "sandwich"), ("table rope --bas", "--base"),
                                ("table rope --rope-th", "--rope-theta"), ("inspect --eng", "--engine")):
            shell = ShellOnTerminal(["zsh", "-f", "-i"], {"HOME": self.folder, "TERM": "dumb", "PS1": "ready> ",
                                                          "PATH": os.environ["PATH"]})
            self.addCleanup(shell.close)
            shell.types(f"fpath=({self.path('functions')} $fpath); autoload -U compinit; compinit -D -u; echo li''st\n")
            shell.sees("list\r\n")
            shell.types(f"posenc {words}\t")
            shell.sees(expected)

    @unittest.skipIf(shutil.which("fish") is None, "fish is not installed")
    def test_fish_completes(self):
        path = self.script("--fish")
        for words, expected in (("posenc tab", ["table"]), ("posenc table sandw", ["sandwich"]),
                                ("posenc table rope --bas", ["--base"]),
                                ("posenc table rope --rope-th", ["--rope-theta"]),
                                ("posenc table rope --layout int", ["interleaved", "interleaved-to-halves"])):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{words}'"],
                                  capture_output=True, text=True, check=True, cwd=self.folder,
                                  env={**os.environ, "HOME": self.folder})
            self.assertEqual(done.stderr, "")
            self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], expected, words)

    def test_every_flag_is_there(self):
        table = json.loads(self.succeeds("help", "--json").out)
        for form in SHELLS:
            script = self.succeeds("help", form).text
            for verb in table["verbs"]:
                for flag in verb["flags"]:
                    name = next(one for one in flag["names"] if one.startswith("--"))
                    self.assertIn(name if form != "--fish" else f"-l {name[2:]}", script)

    def test_the_manual_page(self):
        path = self.write("posenc.1", self.succeeds("help", "--man").out)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for words in (".TH POSENC 1", ".SH SCHEMES", "\\-\\-theta", "posenc inspect"):
            self.assertIn(words, text)
        if shutil.which("man") is None or shutil.which("groff") is None:
            self.skipTest("man and groff are not installed")
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path], capture_output=True,
                              text=True, check=False, env={"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "PATH": "/usr/bin:/bin"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Pages(ProgramTest):
    def test_every_scheme_has_a_page(self):
        for card in json.loads(self.succeeds("list", "--json").out):
            name = card["scheme"]
            text = self.succeeds("list", name).text
            for heading in ("Formula\n", "Used by\n", "Pitfalls\n", "Read on\n"):
                self.assertIn(heading, text, name)
            for field in card["defaults"]:
                self.assertIn("" if field == "scheme" else f"  {field}", text)
            page = json.loads(self.succeeds("list", name, "--json").out)
            self.assertTrue(page["idea"].endswith("."), name)
            if name not in ("steps", "shift"):
                self.assertIn("Papers\n", text, name)
            for paper in page["papers"]:
                if name == "relative-logits":  # Inkling has code and no paper
                    self.assertTrue(paper["url"].startswith("https://github.com/huggingface/transformers/"))
                    continue
                self.assertTrue(paper["url"].startswith("https://arxiv.org/abs/"))
                self.assertRegex(paper["url"][22:], r"^\d{4}\.\d{5}$")
                self.assertIn(int(paper["url"][22:24]) + 2000, range(paper["year"] - 1, paper["year"] + 2))
            for line in text.splitlines():
                self.assertLessEqual(len(line), 100)
                self.assertEqual(line, line.rstrip())

    def test_the_commands_of_a_page_work(self):
        for card in json.loads(self.succeeds("list", "--json").out):
            for command in json.loads(self.succeeds("list", card["scheme"], "--json").out)["read"]:
                self.assertTrue(command.startswith("posenc "))
                words = command.split()[1:]
                if not any("." in word for word in words):  # those with files are shown, not run
                    self.succeeds(*words[:2], "--help") if words[0] == "plot" else self.succeeds(*words)

    def test_rope_cites_its_paper(self):
        text = self.succeeds("list", "RoPE").text
        self.assertIn("Su et al., 2021: RoFormer", text)
        self.assertIn("also theta,", text)
        self.refused("list", "rpoe", says="did you mean 'rope'?")

    def test_families(self):
        families = {one["model_type"]: one["encodes_by"] for one in json.loads(self.succeeds(
            "list", "--families", "--json").out)}
        self.assertGreater(len(families), 600)
        for name, scheme in (("llama", "rope"), ("gpt2", "learned"), ("bloom", "alibi"), ("t5", "t5"),
                             ("mamba", "none"), ("clip", "parts")):
            self.assertEqual(families[name], scheme)
        self.assertEqual(list(families), sorted(families))
        self.assertRegex(self.succeeds("list", "--families").text, r"rope \(\d+\)")


class Colour(ProgramTest):
    def test_when(self):
        self.assertIn("\x1b[1m", self.succeeds("list", "rope", "--color", "always").text)
        self.assertIn("\x1b[1m", self.succeeds("--color=always", "list", "rope").text)
        for words in (("--color", "never"), ("--color=auto",), ()):
            self.assertNotIn("\x1b", self.succeeds("list", "rope", *words).text)
        self.refused("list", "--color", "green", says="--color: 'green' is not one of auto, always, never")
        self.refused("list", "--color", says="--color: auto, always or never is missing")


if __name__ == "__main__":
    unittest.main()
