"""Pictures of figures: by looking at their pixels, and whatever gnuplot may do."""

import math
import os
import re
import signal
import stat
import subprocess
import time
import unittest

from pictures import Png, Svg, pdf_size
from program import POSENC, ProgramTest

KINDS = ("waves", "heatmap", "fingerprint", "phasors", "rotation", "dots", "similarity", "decay", "bias", "scaling", "error")
BLUE, ORANGE = (0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)
GREY = (0xBD, 0xBD, 0xBD)


def mix(one, other, share):
    return tuple(math.floor(a + (b - a) * share + 0.5) for a, b in zip(one, other))


def heat(value, most=1.0):
    """The colour of a value from -most to most: dark blue, blue, white, light orange, orange."""
    white = (255, 255, 255)
    half, end = ((0x4A, 0x8C, 0xC2), (0x08, 0x30, 0x6B)) if value < 0 else ((0xFD, 0xBE, 0x7A), (0xE0, 0x6C, 0x00))
    share = abs(value) / most
    return mix(white, half, share * 2) if share < 0.5 else mix(half, end, share * 2 - 1)


def near(one, other, by=3):
    return all(abs(a - b) <= by for a, b in zip(one, other))


def frequencies(width, base=10000.0):
    return [base ** (-2 * i / width) for i in range(width // 2)]


class Plot(ProgramTest):
    def picture(self, name, *arguments, **options):
        outcome = self.succeeds("plot", *arguments, "-o", self.path(name), **options)
        self.assertEqual(outcome.out, b"")
        self.assertRegex(outcome.err, rf"\Aposenc: wrote \S*{re.escape(name)}: \w+, \d+ x \d+\n\Z")
        return self.read(name)


class Pictures(Plot):
    def test_every_kind_in_every_format(self):
        for kind in KINDS:
            svg = Svg(self.picture(f"{kind}.svg", kind, "--size", "640x480"))
            self.assertEqual(svg.size, (640, 480))
            self.assertIn(svg.title(), svg.texts())
            self.assertEqual(pdf_size(self.picture(f"{kind}.pdf", kind, "--size", "640x480")), (640, 480))
            png = Png(self.picture(f"{kind}.png", kind, "--size", "320x240"))
            self.assertEqual((png.width, png.height), (320, 240))
            colours = png.colours()
            white = colours.pop(b"\xff\xff\xff")
            self.assertEqual(png.pixel(0, 0), (255, 255, 255))
            self.assertGreater(len(colours), 10, kind)
            self.assertTrue(320 * 240 * 0.015 < 320 * 240 - white < 320 * 240 * 0.9, (kind, white))

    def test_the_same_bytes_every_time(self):
        for kind in ("waves", "bias"):
            one = self.succeeds("plot", kind, "-o", "-").out
            other = self.succeeds("plot", kind, "-o", "-", env={**os.environ, "LANG": "de_DE.UTF-8", "LC_ALL": "C",
                                                                "GNUTERM": "dumb", "HOME": self.folder}).out
            self.assertEqual(one, other)
            self.assertNotIn(b"gnuplot 5", one.lower())

    def test_cells_have_the_colour_of_their_value(self):
        arguments = ("heatmap", "sinusoidal", "--width", 16, "--zoom", "0:20", "--size", "600x450")
        svg = Svg(self.picture("map.svg", *arguments))
        png = Png(self.picture("map.png", *arguments))
        left, top, width, height = svg.images()[0]
        cells = svg.image(0)
        self.assertEqual((cells.width, cells.height), (16, 20))
        for position in range(20):
            for feature in range(16):
                wave = (math.sin, math.cos)[feature % 2]
                expected = heat(wave(position * frequencies(16)[feature // 2]))
                self.assertTrue(near(cells.pixel(feature, position), expected, 1), (position, feature))
                x = left + width * (feature + 0.5) / 16
                y = top + height * (position + 0.5) / 20
                self.assertTrue(near(png.pixel(int(x), int(y)), expected), (position, feature, png.pixel(int(x), int(y))))

    def test_cells_that_would_lie_are_grey(self):
        svg = Svg(self.picture("map.svg", "heatmap", "sinusoidal", "--width", 16, "--zoom", "0:100000"))
        cells = svg.image(0)
        self.assertTrue(all(cells.pixel(0, y) == GREY for y in range(cells.height)))
        self.assertFalse(any(cells.pixel(15, y) == GREY for y in range(cells.height)))

    def test_flat_lines_at_their_height(self):
        arguments = ("dots", "sinusoidal", "--width", 8, "--zoom", "0:15", "--size", "600x450")
        svg = Svg(self.picture("dots.svg", *arguments))
        png = Png(self.picture("dots.png", *arguments))
        (_, low), (_, high) = svg.places("2.4")[0], svg.places("3.4")[0]  # what the y axis says
        heights = {}
        for distance, colour in ((1, BLUE), (3, ORANGE)):
            line = max(svg.lines(colour), key=len)
            self.assertEqual(len({y for _, y in line}), 1, "flat")
            self.assertEqual(len(line), 15 - distance)
            heights[distance] = line[0][1]
        pixel = png.pixel(int((line[0][0] + line[-1][0]) / 2), round(max(svg.lines(BLUE), key=len)[0][1]))
        self.assertTrue(near(pixel, BLUE, 60), pixel)
        value = {d: sum(math.cos(d * f) for f in frequencies(8)) for d in (1, 3)}
        self.assertAlmostEqual((heights[3] - heights[1]) / (low - high), value[1] - value[3], delta=0.005)
        # a label stands a few pixels below its tick, by its font
        self.assertAlmostEqual((high - heights[1]) / (low - high), value[1] - 3.4, delta=0.03)

    def test_the_error_of_the_exact_way_is_the_lowest_line(self):
        svg = Svg(self.picture("error.svg", "error"))
        lowest = min(y for _, y in max(svg.lines(BLUE), key=len))
        for colour in (ORANGE, (0x00, 0x9E, 0x73), (0xE6, 0x9F, 0x00)):
            self.assertLess(max(svg.lines(colour), key=len)[-1][1], lowest - 50)

    def test_lines_differ_without_colour(self):
        text = self.picture("scaling.svg", "scaling").decode()
        self.assertGreaterEqual(len(set(re.findall(r"stroke-dasharray='([^']+)'", text))), 4)

    def test_texts_are_texts(self):
        titles = (
            "say \"it's\" \\n \\ 50% %d %s",
            "@{a} ^{b}_c &{d} ~e{f} {/:Bold g}",
            "`touch pwned`; system('touch pwned') $(touch pwned)",
            "x\" ; set output 'pwned' ; set title \"",
            "<script>alert(1)</script> & ]]> 1/2 e-16 €ω",
            "'; !touch pwned #",
        )
        for title in titles:
            svg = Svg(self.picture("t.svg", "waves", "--title", title, "--force", cwd=self.folder))
            self.assertEqual(svg.title(), title)
            self.assertIn(" ".join(title.split()), [" ".join(text.split()) for text in svg.texts()])
            self.assertEqual(self.files(), ["t.svg"])
        svg = Svg(self.picture("t.svg", "waves", "--title", "one\ntwo\t\x01!cat", "--force"))
        self.assertIn("one\\ntwo\\t\\x01!cat", svg.texts())
        self.refused("plot", "waves", "--title", b"\xff\xfe".decode("utf-8", "surrogateescape"), says="--title: is not UTF-8")
        svg = Svg(self.picture("t.svg", "waves", "--title", "", "--force"))
        self.assertIn("position", svg.texts())

    def test_several_pictures_at_standard_output(self):
        for name, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
            self.assertTrue(self.succeeds("plot", "dots", "-o", "-", "--format", name).out.startswith(start))

    def test_files_are_replaced_only_when_told(self):
        self.write("a.svg", b"mine")
        self.refused("plot", "dots", "-o", self.path("a.svg"), says="exists (use --force")
        self.assertEqual(self.read("a.svg"), b"mine")
        self.picture("a.svg", "dots", "--force")
        self.assertIn(b"<svg", self.read("a.svg"))


class Gnuplot(Plot):
    """Whatever it does, there is one line and no file."""

    def fake(self, script):
        folder = os.path.join(self.folder, "bin")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "gnuplot")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, stat.S_IRWXU)
        return {**os.environ, "PATH": folder + ":/usr/bin:/bin"}

    def test_missing(self):
        for path in ("", "/nonexistent", ".", "bin:."):
            environment = {**os.environ, "PATH": path}
            self.refused("plot", "waves", "-o", self.path("a.svg"), code=3, says="gnuplot-nox", env=environment)
            self.assertIn("position", self.succeeds("plot", "waves", env=environment).text)

    def test_relative_folders_are_not_searched(self):
        self.fake("echo pwned > pwned")
        environment = {**os.environ, "PATH": "bin:."}
        self.refused("plot", "waves", "-o", self.path("a.svg"), code=3, says="gnuplot-nox", env=environment,
                     cwd=self.folder)

    def test_failures(self):
        whole = "cat > /dev/null\n"
        for script, says in (
            (whole + "echo 'line 3: undefined variable' >&2; exit 1", "status 1: line 3: undefined variable"),
            ("exit 7", "status 7"),
            (whole + "kill -SEGV $$", "signal 11"),
            (whole + "exit 0", "gnuplot: "),
            (whole + "echo '<svg'", "ended before the picture did"),
            (whole + "exec >&- 2>&-; sleep 100", "does not end"),
        ):
            self.refused("plot", "waves", "-o", self.path("a.svg"), code=3, says=says, env=self.fake(script))

    def test_settings_of_the_user_do_not_count(self):
        environment = self.fake('[ "$1" = --default-settings ] && [ -z "$GNUTERM$LANG" ] && echo "<svg ></svg>"')
        environment.update(GNUTERM="x11", LANG="de_DE")
        self.succeeds("plot", "waves", "-o", self.path("a.svg"), env=environment)

    def test_a_signal_ends_both(self):
        environment = self.fake('echo $$ > "$PIDFILE"; exec sleep 100')
        environment["PIDFILE"] = self.path("pid")
        started = subprocess.Popen([POSENC, "plot", "waves", "-o", self.path("a.svg")], env=environment,
                                   stderr=subprocess.PIPE)
        end = time.monotonic() + 60
        while not os.path.exists(self.path("pid")) or not self.read("pid").strip():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        child = int(self.read("pid"))
        started.send_signal(signal.SIGTERM)
        self.assertEqual(started.wait(20), 143)
        self.assertEqual(started.stderr.read(), b"")
        started.stderr.close()
        with self.assertRaises(ProcessLookupError):
            os.kill(child, 0)
        self.assertEqual(self.files(), ["bin", "pid"])


if __name__ == "__main__":
    unittest.main()
