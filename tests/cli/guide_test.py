"""The guide shows what the program prints: every `$ posenc` line of docs/guide is run.

In what is shown, `> ` begins a line that was typed, and a line that is only … stands for any lines.
"""

import math
import os
import pathlib
import re
import shlex
import unittest

from program import ProgramTest, npy, run

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide"
CONFIG = """{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
 "max_position_embeddings": 131072, "rope_theta": 500000.0,
 "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 8192, "rope_type": "llama3", "type": "llama3"}}"""
YARN = """{"model_type": "qwen3", "head_dim": 128, "num_hidden_layers": 36, "max_position_embeddings": 131072,
 "rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.0,
                                           "original_max_position_embeddings": 32768}}"""
CONFIGS = {"config.json": CONFIG, "yarn.json": YARN}
INPUTS = {"x.npy": (8, 4096, 512), "wpe.npy": (512, 512), "q.npy": (1, 32, 1024, 128)}


def pattern_of(shown):
    return "".join(r"(?:.*\n)*" if line == "…\n" else re.escape(line) for line in shown.splitlines(keepends=True))


class Guide(ProgramTest):
    def setUp(self):
        super().setUp()
        # zeros that take no room
        for name, shape in INPUTS.items():
            path = self.write(name, npy("f32", shape, []))
            os.truncate(path, os.path.getsize(path) + 4 * math.prod(shape))
        for name, text in CONFIGS.items():
            self.write(name, text.encode())

    def test_every_command(self):
        text = "".join(page.read_text("utf-8") for page in sorted(GUIDE.glob("*.md")))
        blocks = re.findall(r"^```\n\$ posenc (.*?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 10)
        for command, shown in blocks:
            if "q_rotated.npy" in command:  # tensors of somebody's model; diagnose_test has such pairs
                continue
            typed = "".join(re.findall(r"^> (.+\n)", shown, re.MULTILINE))
            outcome = run(*shlex.split(command), cwd=self.folder, stdin=None, input=typed.encode())
            printed = outcome.text + outcome.err
            if not re.fullmatch(pattern_of(shown), printed):
                self.assertEqual(printed, shown, command)
            for name in set(self.files()) - set(INPUTS) - set(CONFIGS):
                os.unlink(self.path(name))


if __name__ == "__main__":
    unittest.main()
