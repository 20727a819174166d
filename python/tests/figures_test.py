"""Figures: those of the program, as well-formed SVG."""

import json
import os
import subprocess
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path

import posenc

KINDS = ("waves", "heatmap", "fingerprint", "phasors", "dots", "similarity", "decay", "bias", "scaling", "error", "query-factor", "grid", "ids")


class Figures(unittest.TestCase):
    def test_every_kind_is_well_formed(self):
        for kind in KINDS:
            figure = posenc.plot(kind)
            drawn = xml.dom.minidom.parseString(figure.svg)
            self.assertEqual(drawn.documentElement.tagName, "svg")
            self.assertGreater(len(drawn.getElementsByTagName("path")), 0, kind)
            self.assertLess(len(figure.svg), 2_000_000, kind)
            self.assertNotIn("nan", figure.svg)
            self.assertIn(kind, repr(figure))
            self.assertEqual(figure._repr_html_(), figure.svg)

    @unittest.skipUnless("POSENC" in os.environ, "no program")
    def test_the_numbers_are_the_programs(self):
        # what is preloaded for the interpreter (a sanitizer's run-time) is inside the program already
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        command = [os.environ["POSENC"], "plot", "decay", "rope", "--dims", "64", "--zoom", "0:200", "--json"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        made = posenc.plot("decay", posenc.Rope(dims=64), zoom=(0, 200)).data
        self.assertEqual([panel["series"] for panel in made["panels"]], [panel["series"] for panel in json.loads(shown)["panels"]])

    def test_save(self):
        with tempfile.TemporaryDirectory() as folder:
            posenc.plot("waves", posenc.Sinusoidal(width=8), features=[0, 2], zoom=(0, 50)).save(Path(folder) / "waves.svg")
            self.assertTrue((Path(folder) / "waves.svg").read_text("utf-8").startswith("<svg"))

    def test_refusals(self):
        for call, text in ((lambda: posenc.plot("abacus"), "abacus"), (lambda: posenc.plot("phasors", posenc.Alibi()), "phasors|alibi"),
                           (lambda: posenc.plot("waves", zoom=(5, 5)), "waves|zoom|position|range")):
            with self.assertRaisesRegex(posenc.Error, text):
                call()


if __name__ == "__main__":
    unittest.main()
