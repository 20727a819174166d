"""The guide shows what the program prints: every `$ posenc` line of docs/guide/command-line.md is run."""

import os
import pathlib
import re
import shlex
import unittest

from program import ProgramTest, npy, run

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "command-line.md"


class Guide(ProgramTest):
    def setUp(self):
        super().setUp()
        # zeros that take no room
        for name, shape in (("x.npy", (8, 4096, 512)), ("wpe.npy", (512, 512))):
            path = self.write(name, npy("f32", shape, []))
            os.truncate(path, os.path.getsize(path) + 4 * shape[0] * shape[1] * (shape[2:] or (1,))[0])

    def test_every_command(self):
        blocks = re.findall(r"^```\n\$ posenc (.*?)\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 5)
        for command, shown in blocks:
            outcome = run(*shlex.split(command), cwd=self.folder)
            self.assertEqual(outcome.text + outcome.err, shown, command)
            for name in set(self.files()) - {"x.npy", "wpe.npy"}:
                os.unlink(self.path(name))


if __name__ == "__main__":
    unittest.main()
