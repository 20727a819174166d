"""The tour: one screen, true numbers, and a page that stands alone and never replaces what is not its own."""

import base64
import html.parser
import os
import re
import tempfile
import unittest

import story_oracle
from program import ProgramTest, run
from story_oracle import rounded
from explain_test import content_of

PAGE = "posenc-tour/index.html"


class Page(html.parser.HTMLParser):
    """Every tag is closed in its order; keeps tables as rows of texts, and what the page asks for from outside."""

    VOID = {"meta", "img", "br", "hr", "link", "input", "source"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.outside, self.headings, self.images = [], [], [], [], []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.outside += [value for name, value in attributes if name in ("src", "srcset", "href") and not value.startswith(("data:", "#"))]
        if tag == "img":
            self.images.append(values)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append("")
        if tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        if self.open and self.open[-1] == "h2":
            self.headings[-1] += data


class Tour(ProgramTest):
    """One tour, looked at from several sides."""

    @classmethod
    def setUpClass(cls):
        cls.at = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.at.cleanup)
        cls.outcome = run("tour", cwd=cls.at.name)

    def page(self):
        with open(os.path.join(self.at.name, PAGE), encoding="utf-8") as file:
            return file.read()

    def test_one_screen(self):
        outcome = self.outcome
        self.assertEqual((outcome.code, outcome.err), (0, ""))
        lines = outcome.text.splitlines()
        self.assertLessEqual(len(lines), 60)
        for line in lines:
            self.assertLessEqual(len(line), 80, line)
            self.assertEqual(line, line.rstrip())
        self.assertNotIn("\x1b", outcome.text)
        self.assertEqual(lines[-1], f"Illustrated page with all tables and figures: {PAGE}")
        self.assertEqual(os.listdir(self.at.name), ["posenc-tour"])
        self.assertEqual(os.listdir(os.path.join(self.at.name, "posenc-tour")), ["index.html"])

    def test_numbers(self):
        text = self.outcome.text
        matrices, _, _ = story_oracle.dog_bites_man(content_of("dog-bites-man"))
        for mark in ("", "'"):
            for sentence, values in (("dog bites man", matrices["O1" + mark][0]), ("man bites dog", matrices["O2" + mark][2])):
                self.assertRegex(text, sentence + " +" + " +".join(re.escape(rounded(v, 3)) for v in values) + "\n")
        self.assertIn(f"outputs by up to {matrices['R'][2][0]:.2f}.", text)
        self.assertIn(f"with a causal mask, by {matrices['R'][1][0]:.2f}).", text)
        matrices, _, _ = story_oracle.frank_and_alex({**content_of("frank-and-alex"), "unique_up_to": 4})
        for column, label in enumerate(("without position", "with position")):
            values = [rounded(line[column], 3) for line in matrices["D"]]
            self.assertRegex(text, label + " +" + " +".join(map(re.escape, values)) + "\n")
        self.assertRegex(text, r"none +· +✓ 2\^53 .* ✗ \d\.?\d*e-0\d\n")  # permutation-equivariant, up to rounding
        self.assertRegex(text, r"learned\* .* ✗ 512 ")
        self.assertIn("every result is as expected", " ".join(text.split()))
        self.assertRegex(text, r"posenc +-?0\.\d{9} +512 of 512 +0\n")
        self.assertRegex(text, r"float32 angle, as is usual +-?0\.\d{9} +\d+ of 512 +0\.0\d+\n")
        self.assertRegex(text, r"posenc writes such a table at \d+\.\d GB/s\s+with \d+ threads?; plain stores reach \d+\.\d\s+GB/s\.")

    def test_page(self):
        text = self.outcome.text
        source = self.page()
        page = Page(source)
        self.assertEqual(page.open, [])
        self.assertEqual(page.outside, [], "nothing is asked for from outside")
        self.assertIn("default-src 'none'", source)
        self.assertNotIn("<script", source)
        self.assertIn("prefers-color-scheme: dark", source)
        self.assertIn("@media print", source)
        headings = re.findall(r"(?m)^(\d+\. .*)$", text)
        self.assertEqual(page.headings[:-1], headings)
        self.assertEqual(page.headings[-1], f"{len(headings) + 1}. Errata")
        for table in page.tables:
            self.assertEqual(len({len(row) for row in table}), 1)
        # six figures, each for a wide page and for a phone
        self.assertEqual(source.count("data:image/svg+xml;base64,"), 12)
        self.assertEqual(source.count("<figcaption>"), 6)
        self.assertEqual(source.count("<details>"), source.count("<summary>"))
        self.assertLess(source.index("<figure>"), source.index("Weights and outputs with position"), "a figure first")
        errata = page.tables[-1]
        self.assertIn(["frank-and-alex", "K'[Frank, knows-upscale]", "1.862", "1.703"], errata)
        self.assertIn(["shift", "distance from cat to sat", "8", "9"], errata)
        # text of at least 11 pixels on a phone of 390, whose margins are 32
        for narrow in re.findall(r'srcset="data:image/svg\+xml;base64,([^"]*)"', source):
            svg = base64.b64decode(narrow).decode()
            width = float(re.search(r'width="(\d+)"', svg)[1])
            sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
            self.assertGreaterEqual(min(sizes) * (390 - 32) / width, 11)
        # K' is there, with its note
        self.assertIn(["Frank", "5.251", "1.862"], [row for table in page.tables for row in table])
        self.assertIn("Frank, knows-upscale: 1.862, not 1.703", page.text)

    def test_commands_of_the_last_section_work(self):
        text = self.outcome.text
        commands = re.findall(r"(?m)^  posenc (\S.*?)(?:  +\S.*)$", text.split("Where to go next")[1])
        self.assertGreaterEqual(len(commands), 5)
        self.assertIn("explore", commands)  # serves until it is stopped: explorer.server starts it
        for command in (command for command in commands if command != "explore"):
            if command.startswith("inspect "):  # a file of somebody's model
                command = "inspect --help"
            self.succeeds(*command.split(), cwd=self.folder)


class Files(ProgramTest):
    """Where the page goes. Figures change nothing of that, so these go without gnuplot."""

    def tour(self, *arguments):
        return self.succeeds("tour", *arguments, cwd=self.folder, env={**os.environ, "PATH": self.folder})

    def test_without_gnuplot(self):
        outcome = self.tour()
        self.assertIn("gnuplot is not installed", outcome.err)
        self.assertIn(f"Illustrated page with all tables: {PAGE}", outcome.text)
        self.assertNotIn(b"data:image/svg", self.read(PAGE))

    def test_own_page_is_replaced_and_no_other(self):
        self.tour()
        self.tour()
        os.unlink(self.path(PAGE))
        self.write(PAGE, b"<html>mine</html>")
        self.refused("tour", cwd=self.folder, says=f"{PAGE} exists and was not written by an earlier tour")
        self.assertEqual(self.read(PAGE), b"<html>mine</html>")
        self.tour("--force")
        self.assertIn(b"posenc tour", self.read(PAGE))
        os.unlink(self.path(PAGE))
        os.symlink("nowhere", self.path(PAGE))
        self.refused("tour", cwd=self.folder, says="was not written by an earlier tour")
        os.unlink(self.path(PAGE))
        os.mkdir(self.path(PAGE))
        self.refused("tour", cwd=self.folder, says=PAGE)
        self.refused("tour", "--force", cwd=self.folder, says=f"{PAGE} is a directory")

    def test_folders(self):
        self.tour("-o", "a")
        self.tour("-o", "b/")
        self.assertEqual(self.files(), ["a", "b"])
        self.write("file", b"")
        self.refused("tour", "-o", "file", cwd=self.folder, says="file is not a folder")
        self.refused("tour", "-o", "", cwd=self.folder, says="needs a folder name")
        self.refused("tour", "-o", "-", cwd=self.folder, says="needs a folder name")
        self.refused("tour", "-o", "no/where", cwd=self.folder, code=3, says="no/where: No such file or directory")
        self.refused("tour", "now", cwd=self.folder, says="unexpected argument 'now'")
        self.refused("tour", "--fast", cwd=self.folder, says="unknown option --fast")


if __name__ == "__main__":
    unittest.main()
