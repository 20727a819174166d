"""How much memory and disk a request may take, and how soon it is refused."""

import os
import resource
import subprocess
import time
import unittest

from program import POSENC, SANITIZED, ProgramTest, npy, run

HUGE = ("table", "sinusoidal", "--width", 128, "--positions", f"0:{2**40}")
TOO_MUCH = "table of 1099511627776 x 128 float32 needs 512 TiB; limit is 64 GiB (--max-bytes)"


class Refused(ProgramTest):
    def test_too_large(self):
        self.refused(*HUGE, "-o", self.path("pe.npy"), says=TOO_MUCH)
        self.refused(*HUGE, "-o", "-", says=TOO_MUCH)
        self.refused(*HUGE, says=TOO_MUCH)

    def test_every_way_to_ask_for_too_much(self):
        wide = ("table", "sinusoidal", "--width", 2**20, "--positions", f"0:{2**20}")
        self.refused(*wide, says="needs 4 TiB")
        self.refused("table", "steps", "--positions", f"0:{2**53}", says="needs 16 EiB")
        self.refused("table", "sinusoidal", "--width", 4, "--positions", "0:1024", "--max-bytes", "16383", says="16 KiB")
        self.succeeds("table", "sinusoidal", "--width", 4, "--positions", "0:1024", "--max-bytes", "16384")
        self.succeeds("table", "sinusoidal", "--width", 4, "--positions", "0:1024", "--max-bytes", "16KiB")
        self.refused(*HUGE, "--json", says="needs")

    def test_at_once(self):
        def seconds():
            begin = time.monotonic()
            run(*HUGE, "-o", "-")
            return time.monotonic() - begin

        self.assertLess(min(seconds() for _ in range(10)), 1.0 if SANITIZED else 0.05)

    def test_more_than_the_disk_has(self):
        free = os.statvfs(self.folder).f_bavail * os.statvfs(self.folder).f_frsize
        rows = free // 512 + 2**20
        huge = ("table", "sinusoidal", "--width", 128, "--positions", f"0:{rows}", "--max-bytes", "1EiB")
        self.refused(*huge, "-o", self.path("pe.npy"), code=3, says="are free there")


@unittest.skipIf(SANITIZED, "sanitizers need memory of their own")
class Streamed(ProgramTest):
    def peak(self, *arguments, stdout=subprocess.DEVNULL):
        """The most memory, in MiB, that the program held at any time."""
        process = subprocess.Popen([POSENC, *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE)
        error = process.stderr.read().decode()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, error)
        return usage.ru_maxrss / 1024

    def test_a_table_to_standard_output(self):
        self.assertLess(self.peak("table", "sinusoidal", "--width", 1024, "--positions", "0:262144", "-o", "-"), 64)

    def test_a_table_to_a_file(self):
        out = self.path("pe.npy")
        self.assertLess(self.peak("table", "steps", "--width", 1024, "--positions", "0:131072", "-o", out, "--quiet"), 64)

    def test_text(self):
        for kind in ("csv", "json"):
            table = ("table", "steps", "--width", 64, "--positions", "0:65536", "-o", "-", "--format", kind)
            self.assertLess(self.peak(*table), 64)

    def test_positions_with_a_step(self):
        self.assertLess(self.peak("table", "steps", "--width", 1, "--positions", "0:100000000:2", "-o", "-"), 64)

    def test_apply(self):
        shape = [64, 1024, 1024]
        path = self.write("x.npy", npy("f32", shape, []))
        os.truncate(path, os.path.getsize(path) + 4 * 64 * 1024 * 1024)  # 256 MiB of zeros that take no room
        self.assertLess(self.peak("apply", "steps", path, "-o", "-"), 64)

    def test_rotations(self):
        for more in ((), ("--scaling", "yarn:factor=4", "--numerics", "hf-f32", "--dtype", "f16")):
            table = ("table", "rope", "--dims", 512, "--positions", "0:131072", "-o", "-")
            self.assertLess(self.peak(*table, *more), 64)
        for kind in ("csv", "json"):
            self.assertLess(self.peak("table", "rope", "--positions", "0:16384", "-o", "-", "--format", kind), 64)
        path = self.write("q.npy", npy("f32", [2, 32, 8192, 128], []))
        os.truncate(path, os.path.getsize(path) + 4 * 2 * 32 * 8192 * 128)
        self.assertLess(self.peak("apply", "rope", path, "-o", "-", "--axes", "bhsd"), 64)
        path = self.write("k.npy", npy("f32", [2, 8192, 32, 128], []))
        os.truncate(path, os.path.getsize(path) + 4 * 2 * 32 * 8192 * 128)
        self.assertLess(self.peak("apply", "rope", path, "-o", "-", "--axes", "bshd"), 64)

    def test_a_limit_on_memory(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        table = ("table", "steps", "--width", 1024, "--positions", "0:524288", "-o", "-", "--threads", 1)
        outcome = run(*table, stdout=subprocess.DEVNULL, preexec_fn=limited)
        self.assertEqual((outcome.code, outcome.err), (0, ""))

    def test_out_of_memory(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        path = self.write("wpe.npy", npy("f32", [1 << 20, 1 << 10], []))
        os.truncate(path, os.path.getsize(path) + (4 << 30))
        outcome = run("table", "learned", "--table", path, "--positions", 0, preexec_fn=limited)
        self.assertEqual((outcome.code, outcome.err), (4, "posenc: error: out of memory\n"))


if __name__ == "__main__":
    unittest.main()
