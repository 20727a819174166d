"""posenc lab in several processes: the same bits as in one, and a process that dies. lab_mpi_test.py MPIRUN PROGRAM"""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

MPIRUN, PROGRAM = sys.argv[1:3]
TINY = ["--scheme", "t5", "--width", "16", "--heads", "2", "--size", "8", "--batch", "8", "--threads", "1"]


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    body = data[8 + length :]
    return {name: body[slice(*info["data_offsets"])] for name, info in header.items() if name != "metrics"}, metadata


def mpirun(ranks, *words):
    return [MPIRUN, "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), PROGRAM, *words]


class SeveralProcesses(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="posenc-mpi-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.environ.pop("POSENC_LAB_TEXT", None)

    def checkpoint(self, folder):
        return tensors(os.path.join(self.folder, folder, "text-t5-1", "checkpoint.safetensors"))

    def train(self, ranks, folder, steps):
        done = subprocess.run(mpirun(ranks, "lab", "train", *TINY, "--steps", str(steps), "-o", folder, "--quiet"),
                              cwd=self.folder, capture_output=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_same_bits_for_1_2_and_4_ranks(self):
        for ranks in (1, 2, 4):
            done = self.train(ranks, f"by-{ranks}", 20)
            self.assertEqual(done.stdout.count(b"Checkpoint:"), 1)  # one process speaks
        alone, _ = self.checkpoint("by-1")
        for ranks in (2, 4):
            together, _ = self.checkpoint(f"by-{ranks}")
            self.assertEqual(alone, together)

    def test_a_rank_that_dies_leaves_a_checkpoint(self):
        steps = 1500
        process = subprocess.Popen(mpirun(2, "lab", "train", *TINY, "--steps", str(steps), "-o", "torn"), cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not os.path.exists(os.path.join(self.folder, "torn", "run.json")):
            self.assertIsNone(process.poll(), "ended before it began")
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(self.pid_of_rank(1), signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(b"continue with: posenc lab resume torn", err)
        _, metadata = self.checkpoint("torn")
        self.assertGreater(int(metadata["step"]), 0)
        self.assertLess(int(metadata["step"]), steps)
        # and goes on with another number of processes
        resumed = subprocess.run(mpirun(1, "lab", "resume", "torn", "--quiet"), cwd=self.folder, capture_output=True,
                                 timeout=100, check=False)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.train(1, "whole", steps)
        self.assertEqual(self.checkpoint("torn")[0], self.checkpoint("whole")[0])

    def pid_of_rank(self, rank):
        """The process that mpirun started in our folder with this number."""
        wanted = f"OMPI_COMM_WORLD_RANK={rank}".encode()
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    words = file.read().split(b"\0")
                if wanted in words and os.readlink(f"/proc/{name}/cwd") == os.path.realpath(self.folder):
                    return int(name)
            except OSError:
                continue
        self.fail(f"no process of rank {rank}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
