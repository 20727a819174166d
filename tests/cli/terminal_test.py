"""On a terminal: colour, a progress bar, and as many columns as there are."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata
import unittest

from program import POSENC, ProgramTest, run

SMALL = ("table", "sinusoidal", "--width", 64, "--positions", "0:4")
# seconds of work for the reference backend
LONG = ("table", "sinusoidal", "--width", 1024, "--positions", "0:32768", "--dtype", "f64", "--backend", "reference")


class Terminal(ProgramTest):
    def on_terminal(self, *arguments, columns=80, until=None, **environment):
        """All that appears on a terminal of this width; stops the program once `until` appears."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {**os.environ, "TERM": "xterm", **environment}
        if "NO_COLOR" not in environment:
            env.pop("NO_COLOR", None)
        process = subprocess.Popen([POSENC, *map(str, arguments)], stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        text = b""
        while True:
            try:
                text += os.read(ours, 4096)
            except OSError:  # the program closed its end
                break
            if until and until in text.decode(errors="ignore"):
                process.terminate()
                until = None
        os.close(ours)
        return process.wait(timeout=30), text.decode().replace("\r\n", "\n")

    def test_colour(self):
        for arguments in (("list",), ("--help",), SMALL):
            self.assertIn("\x1b[", self.on_terminal(*arguments)[1], arguments)
            self.assertNotIn("\x1b[", self.on_terminal(*arguments, NO_COLOR="1")[1], arguments)
            self.assertNotIn("\x1b[", self.on_terminal(*arguments, TERM="dumb")[1], arguments)

    def test_nothing_is_torn(self):
        """Lines end at spaces before the terminal's last column; an address is whole, on a line of its own if need be."""
        config = self.write("c.json", b'{"model_type": "llama", "head_dim": 64, "max_position_embeddings": 131072}')
        addresses = re.compile(r"https://\S+")
        for arguments in (("list",), ("list", "rope"), ("list", "alibi"), ("list", "--families"), ("compare", config)):
            # in a pipe; addresses are longer than the 100 columns there
            whole = set(addresses.findall(run(*arguments).text))
            for columns in (40, 60, 80, 120):
                text = self.on_terminal(*arguments, columns=columns, NO_COLOR="1")[1]
                self.assertEqual(set(addresses.findall(text)), whole, arguments)
                for line in text.splitlines():
                    alone = addresses.fullmatch(line.strip()) or " " not in line.strip()
                    # tables of compare need their columns
                    roomy = columns >= 80 or arguments[0] != "compare"
                    self.assertTrue(len(line) <= columns or alone or not roomy, (arguments, columns, line))

    def test_wide_characters(self):
        text = self.succeeds("explain", "dog-bites-man", "--text", "犬が 人を 噛む e\u0301a").text
        rows = text[text.index("X1: "):].splitlines()[1:6]

        def columns(line):
            return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)

        self.assertEqual(len({columns(row) for row in rows}), 1, rows)

    def test_as_wide_as_the_terminal(self):
        for columns in (40, 80, 200):
            lines = self.on_terminal(*SMALL, columns=columns, NO_COLOR="1")[1].splitlines()
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertGreater(max(map(len, lines)), columns - 20)

    def test_progress_of_long_work(self):
        code, text = self.on_terminal(*LONG, "-o", self.path("pe.npy"), until="s left")
        self.assertEqual(code, 143)
        self.assertRegex(text, r"\d+%  [\d.]+ [KMG]iB of 256 MiB  \d+ s left")
        self.assertTrue(text.endswith("\r\x1b[K"), "the bar is taken away")
        self.assertEqual(self.files(), [])

    def test_no_progress_of_short_work(self):
        code, text = self.on_terminal(*SMALL, "-o", self.path("pe.npy"))
        self.assertEqual((code, text), (0, f"posenc: wrote {self.path('pe.npy')}: [4, 64] f32\n"))

    def test_no_bytes_on_a_terminal(self):
        code, text = self.on_terminal(*SMALL, "-o", "-")
        self.assertEqual(code, 2)
        self.assertIn("standard output is a terminal", text)
        self.assertEqual(self.on_terminal(*SMALL, "-o", "-", "--format", "csv")[0], 0)


if __name__ == "__main__":
    unittest.main()
