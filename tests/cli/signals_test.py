"""Stopped from outside: nothing is left behind, and the exit status says what happened."""

import os
import random
import signal
import subprocess
import time
import unittest

from program import POSENC, ProgramTest

# seconds of work for the reference backend, so that a signal always comes in the middle
LONG = ("table", "sinusoidal", "--width", 1024, "--positions", "0:32768", "--dtype", "f64", "--backend", "reference")


def catches(process, number):
    """Whether the program has come as far as to handle the signal."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        caught = next(line for line in status if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1


class Signals(ProgramTest):
    def start(self, *arguments, wait_for=signal.SIGTERM, **options):
        command = [POSENC, *map(str, arguments)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, **options)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        while wait_for and not catches(process, wait_for):
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        return process

    def stops(self, process, number):
        begin = time.monotonic()
        process.send_signal(number)
        self.assertEqual(process.wait(timeout=30), 128 + number)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(process.stderr.read(), b"")

    def test_nothing_is_left_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for pause in (0, 0.05, 0.3):
                process = self.start(*LONG, "-o", self.path("pe.npy"))
                time.sleep(pause)
                self.stops(process, number)
                self.assertEqual(self.files(), [])

    def test_prove(self):
        process = self.start("prove", "rope", "--length", 100000, "--quiet", wait_for=signal.SIGINT, stdout=subprocess.DEVNULL)
        self.stops(process, signal.SIGINT)

    def test_the_old_file_stays(self):
        self.write("pe.npy", b"old")
        process = self.start(*LONG, "-o", self.path("pe.npy"), "--force")
        time.sleep(0.2)
        self.stops(process, signal.SIGTERM)
        self.assertEqual(self.files(), ["pe.npy"])
        self.assertEqual(self.read("pe.npy"), b"old")

    def test_while_nobody_reads_the_output(self):
        arguments = ("table", "sinusoidal", "--width", 1024, "--positions", "0:65536", "-o", "-")
        process = self.start(*arguments, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        process.stdout.read(1 << 16)  # and then no more
        time.sleep(0.2)
        self.stops(process, signal.SIGINT)

    def test_what_is_ignored_stays_ignored(self):
        arguments = ("table", "sinusoidal", "--width", 4, "--positions", "0:4000000", "-o", self.path("pe.npy"), "--quiet")
        process = self.start(*arguments, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(timeout=60), 0)


class Killed(ProgramTest):
    def test_the_target_is_the_old_or_the_new_file_never_a_part(self):
        arguments = ("table", "sinusoidal", "--width", 256, "--positions", "0:32768", "-o", self.path("pe.npy"))
        begin = time.monotonic()
        subprocess.run([POSENC, *map(str, arguments), "--quiet"], check=True)
        duration = time.monotonic() - begin
        new = self.read("pe.npy")
        old = b"old" * 1000
        for _ in range(20):
            self.write("pe.npy", old)
            process = subprocess.Popen([POSENC, *map(str, arguments), "--quiet", "--force"])
            time.sleep(random.uniform(0, duration))
            process.kill()
            process.wait()
            self.assertIn(self.read("pe.npy"), (old, new))
            # a name of its own for the moment before the rename is all that may be left
            strays = [name for name in os.listdir(self.folder) if name != "pe.npy"]
            self.assertLessEqual(len(strays), 1)
            for name in strays:
                self.assertTrue(name.startswith(".pe.npy.posenc-"), name)
                os.unlink(self.path(name))


if __name__ == "__main__":
    unittest.main()
