"""Files appear whole or not at all."""

import contextlib
import os
import resource
import stat
import subprocess
import unittest

from program import POSENC, ProgramTest, parse_npy, run

TABLE = ("table", "sinusoidal", "--width", 256, "--positions", "0:16384")  # 16 MiB
SMALL = ("table", "sinusoidal", "--width", 4, "--positions", "0:4")


class Existing(ProgramTest):
    def test_is_not_replaced(self):
        out = self.write("pe.npy", b"precious")
        self.refused(*SMALL, "-o", out, says="already exists (use --force to overwrite)")
        self.assertEqual(self.read("pe.npy"), b"precious")

    def test_is_refused_before_the_work(self):
        out = self.write("pe.npy", b"precious")
        huge = ("table", "sinusoidal", "--width", 512, "--positions", "0:10000000", "--backend", "reference")
        self.refused(*huge, "-o", out, says="exists", timeout=10)

    def test_is_replaced_with_force(self):
        out = self.write("pe.npy", b"old")
        self.succeeds(*SMALL, "-o", out, "--force")
        self.assertEqual(parse_npy(self.read("pe.npy"))[1], (4, 4))
        self.assertEqual(self.files(), ["pe.npy"])

    def test_keeps_its_mode(self):
        out = self.write("pe.npy", b"old")
        for mode in (0o600, 0o640, 0o755):
            os.chmod(out, mode)
            self.succeeds(*SMALL, "-o", out, "--force")
            self.assertEqual(stat.S_IMODE(os.stat(out).st_mode), mode)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files away")
    def test_keeps_its_owner(self):
        out = self.write("pe.npy", b"old")
        os.chown(out, 12345, 54321)
        self.succeeds(*SMALL, "-o", out, "--force")
        self.assertEqual((os.stat(out).st_uid, os.stat(out).st_gid), (12345, 54321))

    def test_a_new_file_follows_the_umask(self):
        self.succeeds(*SMALL, "-o", self.path("pe.npy"), umask=0o027)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("pe.npy")).st_mode), 0o640)

    def test_a_link_is_followed(self):
        os.mkdir(self.path("there"))
        self.write("there/real.npy", b"old")
        os.symlink("there/real.npy", self.path("link.npy"))
        self.refused(*SMALL, "-o", self.path("link.npy"), says="exists")
        self.succeeds(*SMALL, "-o", self.path("link.npy"), "--force")
        self.assertTrue(os.path.islink(self.path("link.npy")))
        self.assertEqual(parse_npy(self.read("there/real.npy"))[1], (4, 4))
        self.assertEqual(os.listdir(self.path("there")), ["real.npy"])

    def test_a_link_to_nothing_is_followed_too(self):
        os.symlink("new.npy", self.path("link.npy"))
        self.refused(*SMALL, "-o", self.path("link.npy"), says="exists")
        self.succeeds(*SMALL, "-o", self.path("link.npy"), "--force")
        self.assertEqual(self.files(), ["link.npy", "new.npy"])

    def test_links_in_a_circle(self):
        os.symlink("b.npy", self.path("a.npy"))
        os.symlink("a.npy", self.path("b.npy"))
        self.refused(*SMALL, "-o", self.path("a.npy"), "--force", code=3, says="symbolic links")


class NoPlace(ProgramTest):
    def test_directory(self):
        os.mkdir(self.path("d.npy"))
        self.refused(*SMALL, "-o", self.path("d.npy"), says="d.npy is a directory")
        self.refused(*SMALL, "-o", self.path("d.npy"), "--force", says="is a directory")

    def test_device(self):
        os.symlink("/dev/null", self.path("null.npy"))
        self.refused(*SMALL, "-o", self.path("null.npy"), "--force", says="is not a regular file")

    def test_missing_directory(self):
        self.refused(*SMALL, "-o", self.path("no/pe.npy"), code=3, says="No such file or directory")

    def test_a_file_in_place_of_the_directory(self):
        self.write("file", b"")
        self.refused(*SMALL, "-o", self.path("file/pe.npy"), code=3, says="Not a directory")

    def test_directory_without_permission(self):
        os.chmod(self.folder, 0o555)
        self.addCleanup(os.chmod, self.folder, 0o755)
        # root may write anywhere, so somebody else tries
        options = {"user": 65534} if os.geteuid() == 0 else {}
        try:
            self.refused(*SMALL, "-o", self.path("pe.npy"), code=3, says="Permission denied", **options)
        except PermissionError:
            self.skipTest("nobody cannot run the program from where it is")

    def test_a_name_too_long(self):
        self.refused(*SMALL, "-o", self.path("n" * 300 + ".npy"), code=3, says="File name too long")

    def test_the_longest_name(self):
        name = "n" * 251 + ".npy"
        self.succeeds(*SMALL, "-o", self.path(name))
        self.succeeds(*SMALL, "-o", self.path(name), "--force")
        self.assertEqual(self.files(), [name])


@contextlib.contextmanager
def small_disk(test, size):
    """A file system of its own with so much room, for those who may mount one."""
    disk = test.path("disk")
    os.mkdir(disk)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        test.skipTest("mounting is not allowed here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


class FullDisk(ProgramTest):
    def test_is_noticed_before_the_work(self):
        with small_disk(self, "8m") as disk:
            out = os.path.join(disk, "pe.npy")
            self.refused(*TABLE, "-o", out, code=3, says="needs 16 MiB, but only 8 MiB are free there")
            self.assertEqual(os.listdir(disk), [])

    def test_in_the_middle_of_the_work(self):
        with small_disk(self, "8m") as disk:
            out = os.path.join(disk, "pe.csv")  # whose size nobody knows before
            self.refused(*TABLE, "-o", out, code=3, says="pe.csv: No space left on device")
            self.assertEqual(os.listdir(disk), [])
            self.assertGreater(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize, 8_000_000)

    def test_the_old_file_stays(self):
        with small_disk(self, "24m") as disk:
            out = os.path.join(disk, "pe.npy")
            self.succeeds(*TABLE, "-o", out)
            with open(out, "rb") as file:
                before = file.read()
            self.refused(*TABLE, "-o", out, "--force", code=3, says="are free there")
            with open(out, "rb") as file:
                self.assertEqual(file.read(), before)
            self.assertEqual(os.listdir(disk), ["pe.npy"])

    def test_a_limit_on_the_size_of_files(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        self.refused(*TABLE, "-o", self.path("a.npy"), code=3, says="a.npy: File too large", preexec_fn=limited)
        self.refused(*TABLE, "-o", self.path("a.csv"), code=3, says="a.csv: File too large", preexec_fn=limited)


class StandardOutput(ProgramTest):
    def test_full(self):
        for arguments in (SMALL, (*SMALL, "-o", "-"), (*SMALL, "--json"), ("list",), ("--help",), ("tour",)):
            with open("/dev/full", "wb") as full:
                outcome = run(*arguments, stdout=full, cwd=self.folder)
            self.assertEqual(outcome.code, 3, arguments)
            self.assertEqual(outcome.err, "posenc: error: standard output: No space left on device\n")

    def test_nobody_reads(self):
        for arguments in (SMALL, (*TABLE, "-o", "-"), ("list",)):
            reading, writing = os.pipe()
            os.close(reading)
            outcome = run(*arguments, stdout=writing)
            os.close(writing)
            self.assertEqual((outcome.code, outcome.err), (141, ""), arguments)

    def test_a_reader_that_stops_early(self):
        process = subprocess.Popen([POSENC, *map(str, TABLE), "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.read(6), b"\x93NUMPY")
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), 141)

    def closed(self, *arguments):
        command = " ".join([POSENC, *map(str, arguments), ">&-"])
        return subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, timeout=30, check=False)

    def test_closed(self):
        outcome = self.closed(*SMALL)
        self.assertEqual(outcome.returncode, 3)
        self.assertEqual(outcome.stderr, b"posenc: error: standard output: Bad file descriptor\n")

    def test_closed_does_not_mix_with_the_file(self):
        outcome = self.closed(*SMALL, "-o", self.path("pe.npy"))
        self.assertEqual(outcome.returncode, 0)
        self.assertEqual(parse_npy(self.read("pe.npy"))[1], (4, 4))


class TwoAtOnce(ProgramTest):
    def test_only_one_wins(self):
        command = [POSENC, *map(str, TABLE), "-o", self.path("pe.npy")]
        racers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(4)]
        codes = sorted(racer.wait(timeout=60) for racer in racers)
        self.assertEqual(codes, [0, 2, 2, 2])
        self.assertEqual(self.files(), ["pe.npy"])
        self.assertEqual(parse_npy(self.read("pe.npy"))[1], (16384, 256))


if __name__ == "__main__":
    unittest.main()
