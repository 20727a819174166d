"""posenc explore under attack: what may be asked, by whom, and for how long. Grown from a list of attacks that other
servers fell to; each case is refused or answered safely, and memory stays where it was."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

POSENC = os.environ["POSENC"]


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([POSENC, "explore", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.address = self.process.stdout.readline().decode().strip()
        self.port = int(self.address.rsplit(":", 1)[1].rstrip("/"))

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def connect(self, timeout=5):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def ask(self, raw, timeout=5):
        """The whole answer, or what came until the server closed."""
        answer = b""
        try:
            with self.connect(timeout) as connection:
                connection.sendall(raw)
                while True:
                    more = connection.recv(65536)
                    if not more:
                        break
                    answer += more
        except OSError:
            pass
        return answer

    def get(self, path="/", host=None, method="GET", more=""):
        host = f"127.0.0.1:{self.port}" if host is None else host
        return self.ask(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n".encode())

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(timeout=5)


def status(answer):
    match = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(match.group(1)) if match else None


class Explore(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--quiet")
        cls.server.get()
        cls.before = cls.server.memory()

    @classmethod
    def tearDownClass(cls):
        grown = cls.server.memory() - cls.before
        code = cls.server.stop()
        cls.server.process.stdout.close()
        cls.server.process.stderr.close()
        print(f"memory grew by {grown:.2f} MB in all attacks")
        assert grown < 8, f"memory grew by {grown} MB"
        assert code == 0, code

    def tearDown(self):
        self.assertEqual(status(self.server.get()), 200, "the server still answers")

    def test_serves_the_site_with_its_headers(self):
        answer = self.server.get("/")
        head, body = answer.split(b"\r\n\r\n", 1)
        self.assertEqual(status(answer), 200)
        self.assertIn(b"<title>", body)
        for line in (b"Content-Security-Policy: default-src 'none'", b"X-Content-Type-Options: nosniff", b"Referrer-Policy: no-referrer",
                     b"Cross-Origin-Resource-Policy: same-origin", b"Content-Type: text/html; charset=utf-8"):
            self.assertIn(line, head)
        self.assertNotIn(b"Access-Control", head)
        self.assertIn(b"application/wasm", self.server.get("/core.wasm").split(b"\r\n\r\n")[0])

    def test_what_a_browser_has_is_not_sent_again(self):
        tag = re.search(rb'\r\nETag: ("[0-9a-f]{32}")\r\n', self.server.get("/core.wasm")).group(1).decode()
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            head, body = self.server.get("/core.wasm", more=f"If-None-Match: {known}\r\n").split(b"\r\n\r\n", 1)
            self.assertEqual((status(head), body), (304, b""), known)
            self.assertIn(f"ETag: {tag}".encode(), head)
            self.assertIn(b"Content-Security-Policy", head)
        for known in ('"other"', "", tag[:-2] + '"', tag.strip('"')):
            self.assertEqual(status(self.server.get("/core.wasm", more=f"If-None-Match: {known}\r\n")), 200, known)
        self.assertNotIn(tag.encode(), self.server.get("/figures.wasm"))
        self.assertEqual(status(self.server.get("/nothing", more=f"If-None-Match: {tag}\r\n")), 404)
        # the connection stays open after it
        host = f"Host: 127.0.0.1:{self.server.port}\r\n"
        answer = self.server.ask(f"GET /core.wasm HTTP/1.1\r\n{host}If-None-Match: {tag}\r\n\r\nGET /icon.svg HTTP/1.1\r\n{host}Connection: close\r\n\r\n".encode())
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answer), [b"304", b"200"])

    def test_head_has_no_body(self):
        answer = self.server.get("/", method="HEAD")
        self.assertEqual(status(answer), 200)
        self.assertEqual(answer.split(b"\r\n\r\n", 1)[1], b"")

    def test_only_its_own_names_are_served(self):
        port = self.server.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
            self.assertEqual(status(self.server.get(host=host)), 200, host)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"LOCALHOST.:{port}", "", f"localhost:{port}@evil"):
            self.assertIn(status(self.server.get(host=host)), (400, 421), host)
        self.assertEqual(status(self.server.get(host="evil.example")), 421)
        two = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        self.assertIn(status(self.server.ask(two.encode())), (400, 421))
        self.assertEqual(status(self.server.ask(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")), 400)

    def test_other_methods_are_refused(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"):
            self.assertIn(status(self.server.get(method=method)), (400, 405, 501), method)
        self.assertIn(b"Allow: GET, HEAD", self.server.get(method="POST"))

    def test_paths_are_compared_whole(self):
        for path in ("/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/..%5csecret.txt", "//etc/passwd", "/./index.html", "/foo/../../etc/passwd",
                     "/index.html%00.txt", "/index.html%00", "/%69ndex.html", "/index.html/", "/INDEX.HTML", "/index", "/site.cpp"):
            answer = self.server.get(path)
            self.assertEqual(status(answer), 404, path)
            self.assertIn(b"<h1>Not found</h1>", answer)
            self.assertNotIn(b"root:", answer)

    def test_bodies_are_refused_at_the_head(self):
        host = f"Host: 127.0.0.1:{self.server.port}\r\n"
        for head in ("Content-Length: 5", "Content-Length: -5", "Content-Length: 99999999999", "Content-Length: 5\r\nContent-Length: 6", "Transfer-Encoding: chunked",
                     "Content-Length: 4\r\nTransfer-Encoding: chunked", "Content-Length: 5x", "Transfer-Encoding: chunked, identity"):
            for method in ("GET", "POST"):
                answer = self.server.ask(f"{method} / HTTP/1.1\r\n{host}{head}\r\nConnection: close\r\n\r\nhello".encode(), timeout=3)
                self.assertNotEqual(status(answer), 200, f"{method} {head}")

    def test_malformed_requests(self):
        host = f"Host: 127.0.0.1:{self.server.port}\r\n".encode()
        for name, raw in {"no version": b"GET /\r\n\r\n", "bad version": b"GET / HTTP/9.9\r\n" + host + b"\r\n", "binary": bytes(range(256)) + b"\r\n\r\n",
                          "long path": b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + host + b"\r\n", "long header": b"GET / HTTP/1.1\r\n" + host + b"X: " + b"a" * 20000 + b"\r\n\r\n",
                          "folded host": b"GET / HTTP/1.1\r\n" + host + b" evil.example\r\n\r\n", "no colon": b"GET / HTTP/1.1\r\nHost\r\n\r\n",
                          "space in header": b"GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n"}.items():
            answer = self.server.ask(raw, timeout=3)
            self.assertNotEqual(status(answer), 200, name)

    def test_a_nul_ends_the_path_at_most(self):
        raw = b"GET /\0../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % self.server.port
        answer = self.server.ask(raw, timeout=3)
        self.assertTrue(status(answer) != 200 or b"<title>posenc" in answer)

    def test_endless_heads(self):
        for piece in (b"a" * 65536, b"".join(b"H%d: v\r\n" % i for i in range(4000))):
            sent = 0
            try:
                with self.server.connect() as connection:
                    connection.sendall(b"GET / HTTP/1.1\r\nX: ")
                    while sent < 64 << 20:
                        connection.sendall(piece)
                        sent += len(piece)
            except OSError:
                pass
            self.assertLess(sent, 16 << 20)
            self.assertLess(self.server.memory() - self.before, 8)

    def test_many_headers(self):
        self.assertEqual(status(self.server.get(more="".join(f"X{i}: v\r\n" for i in range(100)))), 431)

    def test_ranges_are_ignored(self):
        answer = self.server.get("/core.wasm", more="Range: bytes=" + ",".join(["0-"] * 60) + "\r\n")
        self.assertEqual(status(answer), 200)

    def test_one_byte_at_a_time_is_the_same_request(self):
        raw = f"GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nConnection: close\r\n\r\n".encode()
        with self.server.connect() as connection:
            for i in range(len(raw)):
                connection.sendall(raw[i:i + 1])
            answer = b""
            while more := connection.recv(65536):
                answer += more
        date = re.compile(rb"Date: [^\r]*")
        self.assertEqual(date.sub(b"", answer), date.sub(b"", self.server.ask(raw)))

    def test_pipelined_requests(self):
        one = f"GET /icon.svg HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n"
        answer = self.server.ask((one + "\r\n" + one + "Connection: close\r\n\r\n").encode())
        self.assertEqual(answer.count(b"HTTP/1.1 200"), 2)

    def test_slow_connections_keep_nobody_waiting_and_end(self):
        slow = [self.server.connect() for _ in range(64)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nX-a: b\r\n")
        stop = threading.Event()

        def drip():
            while not stop.wait(0.5):
                for connection in slow:
                    try:
                        connection.sendall(b"X-a: b\r\n")
                    except OSError:
                        pass

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            times = []
            for _ in range(5):
                began = time.monotonic()
                self.assertEqual(status(self.server.get("/icon.svg")), 200)
                times.append(time.monotonic() - began)
            print(f"under 64 slow connections an answer took {1000 * sorted(times)[2]:.1f} ms (median of 5, longest {1000 * max(times):.1f})")
            self.assertLess(sorted(times)[2], 0.1)
            time.sleep(6.5)  # past the deadline of a head
        finally:
            stop.set()
            thread.join()
        ended = 0
        for connection in slow:
            connection.settimeout(1)
            try:
                while connection.recv(4096):
                    pass
                ended += 1
            except ConnectionError:
                ended += 1
            except OSError:
                pass
            connection.close()
        self.assertEqual(ended, 64)


class Program(unittest.TestCase):
    def run_posenc(self, *arguments, program=POSENC):
        return subprocess.run([program, "explore", *arguments], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)

    def test_a_port_that_is_taken(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            done = self.run_posenc("--port", str(other.getsockname()[1]))
        self.assertEqual(done.returncode, 3)
        self.assertIn("Address already in use", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_listens_on_the_loopback_alone(self):
        server = Server()
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        mine = [line[1] for line in listening if int(line[1].split(":")[1], 16) == server.port and line[3] == "0A"]
        self.assertEqual([entry.split(":")[0] for entry in mine], ["0100007F"])
        self.assertEqual(server.stop(signal.SIGINT), 0)
        server.process.stdout.close()
        server.process.stderr.close()

    def test_exports_a_folder_and_a_file(self):
        guide = (Path(os.environ["SOURCE"]) / "docs/guide/explorer.md").read_text("utf-8")
        shown = [line.split("#")[0].split()[2:] for line in guide.splitlines() if line.startswith("posenc explore ")]
        self.assertEqual([words[0] for words in shown], ["--export", "--single-file"])
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "guide"))
            for flag, name in shown:
                self.assertEqual(self.run_posenc(flag, os.path.join(folder, "guide", name)).returncode, 0, flag)
            site = Path(folder) / "site"
            self.assertEqual(self.run_posenc("--export", str(site)).returncode, 0)
            self.assertTrue((site / "index.html").exists() and (site / "core.wasm").exists())
            again = self.run_posenc("--export", str(site))
            self.assertEqual(again.returncode, 2)
            self.assertIn("not empty", again.stderr)
            self.assertEqual(self.run_posenc("--export", str(site), "--force").returncode, 0)
            page = Path(folder) / "one.html"
            self.assertEqual(self.run_posenc("--single-file", str(page)).returncode, 0)
            text = page.read_text()
            self.assertNotIn("@core.wasm@", text)
            self.assertNotRegex(text, r'(?<!<a )(src|href)="(?!data:|#)')  # nothing is loaded,
            self.assertNotRegex(text, r'<a href="(?!https://|#)')  # and links lead to papers or pages of this file
            self.assertEqual(self.run_posenc("--single-file", str(page)).returncode, 2)
            self.assertEqual(self.run_posenc("--single-file", "x", "--export", "y").returncode, 2)

    def test_an_exported_site_knows_its_address(self):
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder) / "site"
            self.assertEqual(self.run_posenc("--export", str(site), "--address", "https://example.org/posenc").returncode, 0)
            for name, picture in (("index.html", "start.png"), ("waves.html", "waves.png")):
                text = (site / name).read_text()
                self.assertIn(f'<meta property="og:image" content="https://example.org/posenc/{picture}">', text)
                self.assertIn(f'<link rel="canonical" href="https://example.org/posenc/{name}">', text)
                self.assertTrue((site / picture).read_bytes().startswith(b"\x89PNG"))
            for wrong in ("example.org", "javascript:alert(1)", 'https://example.org/"><script>', "https://example.org/?a=1"):
                done = self.run_posenc("--export", str(Path(folder) / "no"), "--address", wrong)
                self.assertEqual(done.returncode, 2, wrong)
                self.assertEqual(done.stderr.count("\n"), 1)
                self.assertFalse((Path(folder) / "no").exists())
            self.assertEqual(self.run_posenc("--address", "https://example.org").returncode, 2)

    def test_an_installed_program_carries_the_site(self):
        build = os.path.dirname(os.environ["WASM"])
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cmake", "--install", build, "--prefix", folder], check=True, stdout=subprocess.DEVNULL)
            program = os.path.join(folder, "bin/posenc")
            done = self.run_posenc("--export", os.path.join(folder, "site"), program=program)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("core.wasm", os.listdir(os.path.join(folder, "site")))

    def test_without_the_site_one_line_names_the_way(self):
        done = self.run_posenc(program=os.environ["POSENC_WITHOUT_SITE"])
        self.assertEqual(done.returncode, 3)
        self.assertIn("./run explore", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
