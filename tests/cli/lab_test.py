"""posenc lab: training, interruption and resuming bit for bit, reports, refusals."""

import ast
import json
import math
import os
import pty
import signal
import struct
import subprocess
import time
import unittest

from program import POSENC, SANITIZED, ProgramTest, run

TINY = ["--width", "16", "--heads", "2", "--size", "8", "--batch", "8"]


def tensors(path):
    """name -> bytes, of a .safetensors file; and its metadata."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    body = data[8 + length :]
    return {name: body[slice(*info["data_offsets"])] for name, info in header.items()}, metadata


def npy_floats(path):
    """Shape and numbers of a little-endian float32 .npy file, by its definition."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<H", data[8:10])
    head = ast.literal_eval(data[10 : 10 + length].decode())
    assert data[:6] == b"\x93NUMPY" and head["descr"] == "<f4" and not head["fortran_order"]
    return head["shape"], struct.unpack(f"<{math.prod(head['shape'])}f", data[10 + length :])


class Lab(ProgramTest):
    def setUp(self):
        super().setUp()
        os.environ.pop("POSENC_LAB_TEXT", None)

    def train(self, folder, *arguments, **options):
        return run("lab", "train", *TINY, "-o", folder, *arguments, cwd=self.folder, **options)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def test_train_leaves_everything(self):
        done = self.train("one", "--steps", "12", "--scheme", "t5")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("perplexity", done.text)
        self.assertIn("one/text-t5-1/checkpoint.safetensors", done.text)
        self.assertIn("posenc: text-t5-1: perplexity", done.err)  # a plain line: stderr is no terminal
        self.assertNotIn("\r", done.err)
        names, metadata = tensors(self.path("one", "text-t5-1", "checkpoint.safetensors"))
        self.assertIn("position.table", names)
        self.assertIn("adamw.second.layer.1.down.weight", names)
        self.assertEqual(metadata["step"], "12")
        for file in ("metrics.csv", "eval.csv", "result.json", "position.table.npy"):
            self.assertTrue(os.path.getsize(self.path("one", "text-t5-1", file)) > 0, file)
        # attention of a sequence: rows sum to 1, and no token looks ahead
        shape, weights = npy_floats(self.path("one", "text-t5-1", "attention.npy"))
        self.assertEqual(shape, (2, 2, 8, 8))
        for row in range(2 * 2 * 8):
            line = weights[8 * row : 8 * row + 8]
            self.assertAlmostEqual(sum(line), 1, delta=1e-5)
            self.assertTrue(all(weight == 0 for weight in line[row % 8 + 1 :]) and min(line) >= 0)
        # what was learned can be drawn
        table = ["--table", "one/text-t5-1/position.table.npy", "--bidirectional", "false"]
        drawn = run("plot", "decay", "t5", *table, "alibi", "--heads", "2", "--json", cwd=self.folder)
        self.assertEqual(drawn.code, 0, drawn.err)
        names = [series["name"] for panel in json.loads(drawn.out)["panels"] for series in panel["series"]]
        for name in ("t5, head 0", "t5, head 1", "alibi, head 0", "alibi, head 1"):
            self.assertIn(name, names)
        # also from the checkpoint itself
        inside = run("plot", "decay", "t5", "--table", "one/text-t5-1/checkpoint.safetensors:position.table",
                     "--bidirectional", "false", "alibi", "--heads", "2", "--json", cwd=self.folder)
        self.assertEqual(inside.out, drawn.out, inside.err)

    def test_a_learned_table_is_like_itself(self):
        done = self.train("one", "--steps", "3", "--scheme", "learned", "--quiet")
        self.assertEqual(done.code, 0, done.err)
        drawn = run("plot", "similarity", "learned", "--table", "one/text-learned-1/position.table.npy", "--json",
                    cwd=self.folder)
        self.assertEqual(drawn.code, 0, drawn.err)
        rows = json.loads(drawn.out)["panels"][0]["heat_map"]["values"]
        (count, width), table = npy_floats(self.path("one", "text-learned-1", "position.table.npy"))
        self.assertEqual((len(rows), len(rows[0])), (min(64, count), min(64, count)))
        vectors = [table[width * i : width * (i + 1)] for i in range(len(rows))]
        dot = lambda a, b: sum(x * y for x, y in zip(a, b))
        for i, j in ((0, 0), (3, 9), (9, 3), (40, 63)):
            expected = dot(vectors[i], vectors[j]) / math.sqrt(dot(vectors[i], vectors[i]) * dot(vectors[j], vectors[j]))
            self.assertAlmostEqual(rows[i][j], expected, delta=1e-6)

    def test_inspect_reads_a_checkpoint(self):
        expected = {"rope": "rotary dims  8 of each head", "alibi": "heads 2", "t5": "buckets 32", "none": "no positional",
                    "learned": "learned, 64 rows of 16", "sinusoidal": "sinusoidal, width 16", "kerple": "rates ",
                    "fire": "hidden_weights of ", "xpos": "scaling      xpos"}
        for scheme, words in expected.items():
            done = self.train(scheme, "--steps", "1", "--scheme", scheme, "--quiet")
            self.assertEqual(done.code, 0, done.err)
            checkpoint = self.path(scheme, f"text-{scheme}-1", "checkpoint.safetensors")
            shown = run("inspect", checkpoint)
            self.assertEqual(shown.code, 0, shown.err)
            self.assertIn(words, " ".join(shown.text.split()) if scheme in ("fire", "kerple") else shown.text)
            self.assertIn("posenc-lab  8 positions", shown.text)
            self.assertIn("layers 0-1", shown.text)
            self.assertIn("causal", shown.text)
        # weights of others have their config beside them
        head = b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  '
        with open(self.path("other.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head + bytes(4))
        refused = run("inspect", self.path("other.safetensors"))
        self.assertEqual(refused.code, 2)
        self.assertIn("has weights alone; give the config.json", refused.err)

    def test_resumed_equals_uninterrupted(self):
        steps = "150" if SANITIZED else "600"
        whole = self.train("whole", "--steps", steps, "--scheme", "kerple", "--quiet")
        self.assertEqual(whole.code, 0, whole.err)
        process = subprocess.Popen(
            [POSENC, "lab", "train", *TINY, "-o", "torn", "--steps", steps, "--scheme", "kerple", "--threads", "1"],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not os.path.exists(self.path("torn", "run.json")):
            self.assertIsNone(process.poll(), "ended before it began")
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode == 0:
            self.skipTest("the machine was faster than the signal")
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"continue with: posenc lab resume torn", err)
        _, metadata = tensors(self.path("torn", "text-kerple-1", "checkpoint.safetensors"))
        self.assertLess(int(metadata["step"]), int(steps))
        self.assertFalse(os.path.exists(self.path("torn", "text-kerple-1", "result.json")))
        resumed = run("lab", "resume", "torn", "--quiet", "--threads", "2", cwd=self.folder)
        self.assertEqual(resumed.code, 0, resumed.err)
        one, _ = tensors(self.path("whole", "text-kerple-1", "checkpoint.safetensors"))
        two, _ = tensors(self.path("torn", "text-kerple-1", "checkpoint.safetensors"))
        self.assertEqual(one.keys(), two.keys())
        for name in one:
            if name != "metrics":  # which holds speeds
                self.assertEqual(one[name], two[name], name)

    def test_a_run_is_reported(self):
        jobs = []
        for scheme in ("alibi", "rope", "none"):
            for seed in ("1", "2"):
                name = f"part-{scheme}-{seed}"
                done = self.train(name, "--steps", "30", "--scheme", scheme, "--seed", seed, "--quiet")
                self.assertEqual(done.code, 0, done.err)
                with open(self.path(name, "run.json"), encoding="utf-8") as file:
                    part = json.load(file)
                jobs += part["jobs"]
                os.makedirs(self.path("all"), exist_ok=True)
                os.rename(self.path(name, part["jobs"][0]["name"]), self.path("all", part["jobs"][0]["name"]))
        part["jobs"] = jobs
        with open(self.path("all", "run.json"), "w", encoding="utf-8") as file:
            json.dump(part, file)
        done = run("lab", "report", "all", cwd=self.folder)
        self.assertEqual(done.code, 0, done.err)
        with open(self.path("all", "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertEqual(summary["models"], 6)
        verdicts = {verdict["id"]: verdict for verdict in summary["verdicts"]}
        flat = verdicts["alibi-extrapolates"]
        self.assertEqual(len(flat["values"]), 2)
        least, most = flat["interval_95"]  # of two seeds their range, which decides only what is far
        self.assertEqual((least, most), (min(flat["values"]), max(flat["values"])))
        far = min(abs(least - 1.03), abs(most - 1.03)) > most - least
        self.assertEqual(flat["verdict"], "undecided" if not far else "reproduced" if most <= 1.03 else "refuted")
        self.assertEqual(verdicts["copy-alibi"]["verdict"], "not testable here")
        self.assertTrue(verdicts["copy-alibi"]["reason"])
        with open(self.path("all", "report.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("ALiBi keeps its perplexity", page)
        self.assertNotIn("http", page.replace("http://www.w3.org", ""))
        # nothing is trained again
        resumed = run("lab", "resume", "all", cwd=self.folder)
        self.assertEqual(resumed.code, 0, resumed.err)
        self.assertEqual(resumed.text, done.text)

    def test_refusals(self):
        def message(*arguments):
            done = run("lab", *arguments, cwd=self.folder)
            self.assertEqual(done.code, 2, done.err)
            self.assertEqual(done.err.count("\n"), 1, done.err)
            return done.err

        self.assertIn("unknown preset 'smok' (did you mean 'smoke'?)", message("run", "smok"))
        self.assertIn("unknown action 'rnu'", message("rnu"))
        self.assertIn("--task: 'copie' is not one of", message("train", "--task", "copie"))
        self.assertIn("--scheme", message("train", "--scheme", "rop"))
        self.assertIn("no run of the lab", message("resume", "."))
        self.assertIn("needs a preset", message("run"))
        # a run that takes hours says so before it begins
        self.assertRegex(message("run", "full", "--threads", "1"),
                         r"lab run full: 72 models would take about \d+ hours with 1 thread of this machine; --long")
        self.assertFalse(os.path.exists(self.path("lab-full")))
        self.assertIn("multiple of 2·heads", message("train", "--width", "30", "--heads", "4"))
        os.mkdir(self.path("full"))
        with open(self.path("full", "mine"), "w", encoding="utf-8") as file:
            file.write("mine")
        self.assertIn("full exists and is no run", message("train", "-o", "full"))
        done = self.train("twice", "--steps", "1", "--quiet")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("lab resume twice", message("train", "-o", "twice", "--steps", "1"))
        self.assertEqual(self.train("twice", "--steps", "1", "--quiet", "--force").code, 0)
        # a text that is another one, or none
        with open(self.path("short.txt"), "w", encoding="utf-8") as file:
            file.write("too short")
        self.assertIn("10,000 at least", message("train", "--text", "short.txt", "-o", "x"))
        with open(self.path("other.txt"), "w", encoding="utf-8") as file:
            file.write("another text. " * 1000)
        self.assertIn("begun with generated text", message("resume", "twice", "--text", "other.txt"))
        # a checkpoint that was cut
        os.unlink(self.path("twice", "text-rope-1", "result.json"))
        checkpoint = self.path("twice", "text-rope-1", "checkpoint.safetensors")
        os.truncate(checkpoint, os.path.getsize(checkpoint) - 8)
        self.assertIn("checkpoint.safetensors: byte", message("resume", "twice"))

    def test_a_terminal_shows_a_bar(self):
        mine, theirs = pty.openpty()
        process = subprocess.Popen([POSENC, "lab", "train", *TINY, "-o", "shown", "--steps", "40"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        seen = b""
        while True:
            try:
                more = os.read(mine, 4096)
            except OSError:
                break
            if not more:
                break
            seen += more
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertIn("░".encode(), seen)
        self.assertIn(b"tokens/s", seen)


if __name__ == "__main__":
    unittest.main()
