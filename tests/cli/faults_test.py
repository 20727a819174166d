"""Every system call for files fails once, at every place where it is used."""

import os
import subprocess
import unittest

from program import POSENC, SANITIZED, ProgramTest, npy, run

FAULTS = os.environ["POSENC_FAULTS"]
TABLE = ("table", "sinusoidal", "--width", 64, "--positions", "0:70000", "--threads", 1, "--quiet")  # 3 blocks
MOST_CALLS = 6  # of one kind in one run, or more
OLD = b"the old file"


def environment(**more):
    quiet = {"ASAN_OPTIONS": "verify_asan_link_order=0:alloc_dealloc_mismatch=0:detect_leaks=0"}
    return dict(os.environ, LD_PRELOAD=FAULTS, **quiet, **more)


class Faults(ProgramTest):
    def setUp(self):
        super().setUp()
        self.good = self.succeeds(*TABLE, "-o", "-").out

    def with_fault(self, fault, *more):
        return run(*TABLE, "-o", self.path("pe.npy"), *more, env=environment(POSENC_FAULT=fault))

    def check(self, fault, outcome, force):
        """The target is whole, or what it was; success means that it is whole; nothing else is there."""
        found = self.read("pe.npy") if "pe.npy" in self.files() else None
        before = OLD if force else None
        self.assertIn(found, (before, self.good), fault)
        self.assertIn(self.files(), ([], ["pe.npy"]), fault)
        if outcome.code == 0:
            self.assertEqual(found, self.good, fault)
            self.assertEqual(outcome.err, "", fault)
        else:
            self.assertEqual(outcome.code, 3, fault + outcome.err)
            self.assertRegex(outcome.err, r"\Aposenc: error: [^\n]+\n\Z")

    def sweep(self, call, error, *, force):
        """Fails the first use of the call, the second, and so on until none is left; returns the exit statuses."""
        codes = []
        while True:
            if force:
                self.write("pe.npy", OLD)
            fault = f"{call}:{len(codes) + 1}:{error}"
            outcome = self.with_fault(fault, *(["--force"] if force else []))
            self.check(fault, outcome, force)
            for name in self.files():
                os.unlink(self.path(name))
            codes.append(outcome.code)
            if outcome.code == 0 and len(codes) > MOST_CALLS:
                return codes
            self.assertLess(len(codes), 2 * MOST_CALLS)

    def test_errors_of_every_call(self):
        for force in (False, True):
            for call in ("write", "fsync", "close", "linkat", "renameat", "fallocate"):
                for error in ("ENOSPC", "EIO"):
                    codes = self.sweep(call, error, force=force)
                    if call != "renameat" or force:
                        self.assertIn(3, codes, (call, error))

    def test_interruptions_are_no_errors(self):
        for call in ("write", "fallocate"):
            self.assertEqual(set(self.sweep(call, "EINTR", force=False)), {0})

    def test_short_writes_are_no_errors(self):
        outcome = self.with_fault("write:1:short")
        self.check("short", outcome, force=False)
        self.assertEqual(outcome.code, 0)

    def test_file_systems_that_cannot_reserve(self):
        outcome = self.with_fault("fallocate:1:EOPNOTSUPP")
        self.check("fallocate", outcome, force=False)
        self.assertEqual(outcome.code, 0)

    def test_file_systems_without_directories_to_sync(self):
        outcome = self.with_fault("fsync:2:EINVAL")
        self.assertEqual(outcome.code, 0, outcome.err)

    def test_inputs(self):
        x = self.write("x.npy", npy("f32", [64, 4], [0] * 256))
        arguments = ("apply", "sinusoidal", x, "-o", self.path("y.npy"), "--quiet")
        for when in (1, 2):
            outcome = run(*arguments, env=environment(POSENC_FAULT=f"pread:{when}:EIO"))
            self.assertEqual((outcome.code, self.files()), (3, ["x.npy"]))
            self.assertEqual(outcome.err, f"posenc: error: {x}: Input/output error\n")
        for fault in ("pread:1:EINTR", "pread:1:short"):
            self.assertEqual(run(*arguments, "--force", env=environment(POSENC_FAULT=fault)).code, 0)


class WithoutUnnamedFiles(Faults):
    """The same where the file system has no O_TMPFILE: the file has a name of its own while it is written."""

    def setUp(self):
        super().setUp()
        probe = self.with_fault("tmpfile:1:EOPNOTSUPP")
        self.check("tmpfile", probe, force=False)
        self.assertEqual(probe.code, 0)
        os.unlink(self.path("pe.npy"))

    def with_fault(self, fault, *more):
        env = environment(POSENC_FAULT=fault, POSENC_NO_TMPFILE="1")
        return run(*TABLE, "-o", self.path("pe.npy"), *more, env=env)

    def test_errors_of_every_call(self):
        for force, rename in ((False, "renameat2"), (True, "renameat")):
            for call in ("openat", "write", "fsync", "close", rename):
                self.assertIn(3, self.sweep(call, "EIO", force=force), call)

    def test_without_renameat2(self):
        outcome = self.with_fault("renameat2:1:EINVAL")
        self.check("renameat2", outcome, force=False)
        self.assertEqual(outcome.code, 0)

    def test_only_one_of_two_at_once_wins(self):
        command = [POSENC, *map(str, TABLE), "-o", self.path("pe.npy")]
        env = environment(POSENC_NO_TMPFILE="1")
        racers = [subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) for _ in range(3)]
        self.assertEqual(sorted(racer.wait(timeout=60) for racer in racers), [0, 2, 2])
        self.assertEqual(self.files(), ["pe.npy"])

    def test_a_signal_takes_the_temporary_file_away(self):
        command = [POSENC, *map(str, TABLE), "-o", self.path("pe.npy"), "--backend", "reference"]
        process = subprocess.Popen(command, env=environment(POSENC_NO_TMPFILE="1"))
        while not self.files():
            self.assertIsNone(process.poll())
        self.assertRegex(self.files()[0], rf"\A\.pe\.npy\.posenc-{process.pid}-[0-9a-f]{{8}}\Z")
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 143)
        self.assertEqual(self.files(), [])


class Order(ProgramTest):
    """What is on the disk before what: a name must never stand for data that is not there yet."""

    def calls(self, *more):
        log = self.write("calls", b"")
        out = self.path("pe.npy")
        self.assertEqual(run(*TABLE, "-o", out, *more, env=environment(POSENC_CALLS=log)).code, 0)
        calls = self.read("calls").decode().split("\n")[:-1]
        return [call for i, call in enumerate(calls) if i == 0 or call != calls[i - 1]]

    def test_new(self):
        self.assertEqual(self.calls(), ["tmpfile", "fallocate", "write", "fsync file", "linkat", "fsync directory"])

    def test_replaced(self):
        self.write("pe.npy", OLD)
        expected = ["tmpfile", "fallocate", "write", "fsync file", "linkat", "renameat", "fsync directory"]
        self.assertEqual(self.calls("--force"), expected)


@unittest.skipIf(SANITIZED, "sanitizers see to memory themselves")
class Memory(ProgramTest):
    def test_every_allocation_fails_once(self):
        """Every 13th of them, for there are some thousands."""
        when = 1
        while True:
            outcome = run(*TABLE, "-o", self.path("pe.npy"), env=environment(POSENC_FAULT=f"new:{when}:ENOMEM"))
            if outcome.code == 0:
                break
            self.assertEqual((outcome.code, outcome.err), (4, "posenc: error: out of memory\n"), when)
            self.assertEqual(self.files(), [])
            when += 13
        self.assertGreater(when, 500)


if __name__ == "__main__":
    unittest.main()
