"""The guide shows what the program prints: every `$ posenc` line of docs/guide is run."""

import math
import os
import pathlib
import re
import shlex
import unittest

from program import ProgramTest, npy, run

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide"
INPUTS = {"x.npy": (8, 4096, 512), "wpe.npy": (512, 512), "q.npy": (1, 32, 1024, 128)}


class Guide(ProgramTest):
    def setUp(self):
        super().setUp()
        # zeros that take no room
        for name, shape in INPUTS.items():
            path = self.write(name, npy("f32", shape, []))
            os.truncate(path, os.path.getsize(path) + 4 * math.prod(shape))

    def test_every_command(self):
        text = "".join(page.read_text("utf-8") for page in sorted(GUIDE.glob("*.md")))
        blocks = re.findall(r"^```\n\$ posenc (.*?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 10)
        for command, shown in blocks:
            outcome = run(*shlex.split(command), cwd=self.folder)
            self.assertEqual(outcome.text + outcome.err, shown, command)
            for name in set(self.files()) - set(INPUTS):
                os.unlink(self.path(name))


if __name__ == "__main__":
    unittest.main()
