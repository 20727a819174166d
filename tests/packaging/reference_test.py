"""The API reference: every public declaration has a place, every link leads somewhere, the same sources give the same bytes."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "packaging/site/reference.py"
PACKAGE = sys.argv.pop() if len(sys.argv) > 1 else ""  # of this build; it may have none


def make(folder):
    subprocess.run([sys.executable, "-B", SCRIPT, folder, *([PACKAGE] if PACKAGE else [])], check=True)
    return {path.name: path.read_text("utf-8") for path in sorted(Path(folder).iterdir())}


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.pages = make(folder)

    def test_the_same_again(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(make(os.path.join(folder, "new", "folder")), self.pages)

    def test_links(self):
        places = {name: set(re.findall(r'id="([^"]+)"', text)) for name, text in self.pages.items()}
        links = 0
        for name, text in self.pages.items():
            found = re.findall(r'id="([^"]+)"', text)
            self.assertEqual(len(found), len(set(found)), name)
            for to in re.findall(r'href="([^"]*)"', text):
                page, _, part = to.partition("#")
                self.assertIn(page or name, self.pages, (name, to))
                self.assertTrue(not part or part in places[page or name], (name, to))
                links += 1
        self.assertGreater(links, 500)

    def test_every_function_of_c(self):
        declared = re.findall(r"^POSENC_API .*?(\w+)\(", (ROOT / "include/posenc/posenc_c.h").read_text("utf-8"), re.MULTILINE)
        self.assertGreater(len(declared), 60)
        for name in declared:
            self.assertIn(f'<b id="{name}">', self.pages["posenc-posenc_c.html"])

    def test_every_documented_header(self):
        for path in (ROOT / "include/posenc").rglob("*.h"):
            text = path.read_text("utf-8")
            page = path.relative_to(ROOT / "include").as_posix().replace("/", "-").removesuffix(".h") + ".html"
            if not re.search(r"^///.*\n(?:///.*\n)*(?:struct|class|enum|using|template|\w[\w:<>&, ]* \w+\()", text, re.MULTILINE):
                continue
            for name in re.findall(r"^///.*\n(?:struct|enum class) (\w+)", text, re.MULTILINE):
                self.assertIn(f'id="{name}"', self.pages[page], path)
        rotate = self.pages["posenc-apply.html"].partition('id="rotate"')[2]
        self.assertIn("Bit-identical on every machine.", rotate)
        self.assertIn("Rotates the pairs of features in x", rotate.partition("<pre>")[0])

    def test_python(self):
        self.assertIn("def rotate(", self.pages["posenc.apply-py.html"])
        self.assertIn("def check(", self.pages["posenc.models-py.html"])
        self.assertIn('id="watch"', self.pages["posenc.watching-py.html"])
        self.assertNotIn("handle_of", self.pages["posenc.forms-py.html"])
        if PACKAGE and Path(PACKAGE, "keywords.py").exists():
            self.assertIn("def attention(", self.pages["posenc.keywords-py.html"])
            self.assertIn("class Rope(", self.pages["posenc.schemes-py.html"])

    def test_arguments(self):
        for arguments in ([], ["a", "b", "c"]):
            self.assertNotEqual(subprocess.run([sys.executable, "-B", SCRIPT, *arguments], stderr=subprocess.DEVNULL).returncode, 0)


if __name__ == "__main__":
    unittest.main()
