"""What posenc once said wrongly: one test for each, numbered as they were reported. Each failed when it was written, here
or in the test that it names."""

import json
import math
import pathlib
import re
import unittest

from program import ProgramTest, npy, run

CONTENT = pathlib.Path(__file__).parents[2] / "content"
# from words.md's left column: none of these sentences, nor what is left of them, may come back
LEFT_COLUMN = ("turns them by it", "said of each scheme", "say of position", "made one tensor from another",
               "must be said", "stands there", "explains every number", "left over", "never finish one", "that turn",
               "nearer is never less", "a matter of", "stands out", "audible", "blind", "positions that are known",
               "Frank and Alex part", "the two part", "The further, the less", "Stretching rope",
               "none of the usual mistakes", "Once more", "1 not, 2 barely", "turns the card", "whole turns left in",
               "there is tour", "takes no text of one's own", "1 radians", "1 ulps", "One reads that", "in the large")


def attention(rows, causal):
    """softmax(X Xᵀ) X of a few rows, without position."""
    outputs = []
    for i, query in enumerate(rows):
        seen = rows[: i + 1] if causal else rows
        weights = [math.exp(sum(a * b for a, b in zip(query, key))) for key in seen]
        outputs.append([sum(w * row[j] for w, row in zip(weights, seen)) / sum(weights) for j in range(len(query))])
    return outputs


class Corrections(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        listed = json.loads(run("practice", "--list", "--json").out)
        cls.questions = {one["id"]: one for one in listed["questions"]}
        cls.cards = {one["id"]: one for one in listed["cards"]}

    def text(self, identifier):
        return json.dumps(self.questions.get(identifier) or self.cards[identifier], ensure_ascii=False)

    def test_01_sin_monotone_does_not_simply_fall(self):
        answer = self.questions["sin-monotone"]["answer"]
        self.assertNotIn("from there it falls", answer)
        again = sum(math.cos(6283 * 10000 ** (-2 * i / 8)) for i in range(4))
        self.assertIn(f"at distance 6283 it is {again:.3f}", answer)

    def test_02_monotone_looks_at_every_query(self):
        """tests/properties/dot_test.cpp: Monotone.RowsThatGrowAreNotMonotoneFromEveryQuery."""
        for scheme in ("steps", "shift"):
            outcome = run("prove", scheme, "--json")
            (report,) = json.loads(outcome.out)["schemes"]
            (found,) = (one for one in report["findings"] if one["property"] == "monotone")
            self.assertEqual(found["outcome"], "fails", scheme)

    def test_03_alibi_with_heads_that_are_no_power_of_two(self):
        def slope(heads, head):
            power = 2 ** int(math.log2(heads))
            return 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (2 * (head - power) + 1) / power)

        seen = set()
        for item in json.loads(run("practice", "--kind", "fill-ins", "--tag", "alibi-bias", "--count", 60, "--seed", 1,
                                   "--json").out)["items"]:
            heads, head, query, key = (int(item["given"][name]) for name in ("heads", "head", "query", "key"))
            self.assertAlmostEqual(item["answer"], -slope(heads, head) * abs(query - key))
            if heads & (heads - 1):
                seen.add(heads)
                self.assertIn("is not a power of two", item["hint"])
                self.assertNotIn(f"/{heads})", item["hint"])
        self.assertTrue(seen & {6, 12})
        for command in (("list",), ("list", "alibi")):
            self.assertIn("if heads is a power of two", " ".join(self.succeeds(*command).text.split()))

    def test_04_thousands_separators(self):
        """Also tests/lessons/exercise_test.cpp, and names_test.py for flags."""
        for seed in range(40):
            (item,) = json.loads(run("practice", "--kind", "fill-ins", "--tag", "table-size", "--count", 1,
                                     "--seed", seed, "--json").out)["items"]
            typed = f"{int(item['answer']):,}"
            if typed.count(",") != 1:
                continue
            text = run("practice", "--kind", "fill-ins", "--tag", "table-size", "--count", 1, "--seed", seed,
                       "--no-progress", input=f"{typed}\n".encode(), stdin=None).text
            self.assertIn("Right.", text)
            return
        self.fail("no answer with one thousands separator")

    def test_05_base_is_not_the_ratio_of_wavelengths(self):
        for verb in ("table", "apply"):
            text = " ".join(self.succeeds(verb, "sinusoidal", "--help").text.split())
            self.assertIn("longest / shortest wavelength = base^((width-2)/width)", text)
            self.assertNotIn("how much slower", text)
        width, base = 8, 10000
        waves = [2 * math.pi * base ** (2 * i / width) for i in range(width // 2)]
        self.assertAlmostEqual(waves[-1] / waves[0], base ** ((width - 2) / width))

    def test_06_order_causal_mask(self):
        dog, bites, man = [1, 0, 0.5], [0, 1, 0.2], [0.3, 0, 1]
        one, other = attention([dog, bites, man], True), attention([man, bites, dog], True)
        for a, b in ((0, 2), (1, 1), (2, 0)):
            self.assertGreater(math.dist(one[a], other[b]), 1e-3, "every word's output changes")
        last = [attention([dog, bites, man], True)[2], attention([bites, dog, man], True)[2]]
        self.assertLess(math.dist(*last), 1e-12, "the last one cannot see the order of those before it")
        (right,) = (choice["text"] for choice in self.questions["order-causal-mask"]["choices"] if choice["right"])
        self.assertIn('"dog", "bites" and "man" all do', right)

    def test_07_one_irrational_period_is_enough(self):
        text = self.text("sin-any-length")
        self.assertIn("Pair 0 alone", text)
        self.assertNotIn("all wavelengths", text)

    def test_08_a_wrong_layout_gives_gibberish(self):
        self.assertIn("gibberish", self.text("rope-wrong-layout"))
        self.assertIn("gibberish", self.succeeds("list", "rope").text)
        for path in CONTENT.rglob("*.json"):
            self.assertNotIn("almost right", path.read_text("utf-8"), path)

    def test_09_sines_first_with_the_papers_spacing_is_marian(self):
        (choice,) = (one for one in self.questions["sin-row-one"]["choices"] if "All sines" in one["because"])
        self.assertIn("Marian", choice["because"])
        self.assertNotIn("tensor2tensor", choice["because"])
        self.assertIn("tensor2tensor", self.text("sin-slowest-wave"), "whose spacing is another one")

    def test_10_the_root_of_d_is_the_usual_explanation(self):
        self.assertIn("The paper states the factor but gives no reason", self.text("sin-embedding-scale"))

    def test_11_equally_many_waves_per_octave(self):
        (right,) = (one["text"] for one in self.questions["sin-spacing"]["choices"] if one["right"])
        self.assertIn("Equally many pairs per octave", right)
        waves = [2 * math.pi * 10000 ** (2 * i / 512) for i in range(256)]
        counts = [sum(low <= wave < 2 * low for wave in waves) for low in (10, 100, 1000, 10000)]
        self.assertLessEqual(max(counts) - min(counts), 1)

    def test_12_shaw_also_adds_to_the_values(self):
        self.assertIn("to the values", self.text("shaw-what"))
        self.assertIn("to the value", self.text("card-shaw"))
        self.assertIn("to the values", self.succeeds("list", "shaw").text)

    def test_13_rope_sign_does_not_speak_of_all_others(self):
        self.assertNotIn("all others", self.text("rope-sign"))
        self.assertIn("Most models", self.text("rope-sign"))

    def test_14_cards_make_sense_when_shuffled(self):
        """Also tests/lessons/content_test.cpp: Content.CardsMakeSenseWhenShuffled."""
        for card in self.cards.values():
            self.assertNotRegex(card["front"], r"\b(behind it|its|this one|the other)\b\??$", card["id"])
            self.assertNotEqual(card["front"], "Which identity is behind it?")

    def test_15_kerple_fire_shows_three_different_numbers(self):
        numbers = re.findall(r"\b[01]\.\d{3}\b", self.questions["kerple-fire"]["answer"])
        self.assertEqual(len(numbers), 3)
        self.assertEqual(len(set(numbers)), 3)
        psi = [math.log(0.1 * x + 1) for x in (1000, 100, 1)]
        self.assertEqual(numbers, [f"{value / psi[0]:.3f}" for value in psi])

    def test_16_a_tick_is_good_news(self):
        text = self.succeeds("prove", "sinusoidal", "--width", 8).text
        for line in ("attention sees word order", "with a causal mask, attention sees word order",
                     "differences between adjacent rows vary"):
            self.assertRegex(text, rf"(?m)^✓ {line}")
        self.assertRegex(run("prove", "none").text, r"(?m)^✗ attention sees word order")

    def test_17_dots_hold_each_line_once(self):
        (panel,) = json.loads(self.succeeds("plot", "dots", "sinusoidal", "--width", 8, "--json").out)["panels"]
        lines = [json.dumps([series["x"], series["y"]]) for series in panel["series"]]
        self.assertEqual(len(lines), len(set(lines)))

    def test_18_cells_take_the_printed_notation_and_open_down_to_numbers(self):
        """Also explain_test.py: Cells."""
        for story, cell in (("dot-product", "D[3, 4]"), ("shift", "M[d0, d0]"), ("rope", "S[13, 10]"),
                            ("dot-product", "G[2, from-1000000]"), ("frank-and-alex", "A'[Daniel, Alex]")):
            opened = json.loads(self.succeeds("explain", story, "--cell", cell, "--json").out)
            self.assertTrue(opened["terms"], (story, cell))

    def test_18_every_cell_of_every_story_opens(self):
        """Down to numbers, unless it is given, hidden by a mask, or a 0 that says why: no other phrase explains a cell."""
        closed = set()
        for card in json.loads(self.succeeds("explain", "--json").out):
            story = json.loads(self.succeeds("explain", card["story"], "--json").out)
            for block in (block for step in story["steps"] for block in step["blocks"] if block["kind"] == "matrix"):
                # the first and the last cell of each matrix that are there
                cells = [(row, column) for row, line in zip(block["rows"], block["values"])
                         for column, value in zip(block["columns"], line) if value is not None]
                for row, column in {cells[0], cells[-1]}:
                    name = f"{block['name']}[{row}, {column}]"
                    opened = json.loads(self.succeeds("explain", card["story"], "--cell", name, "--json").out)
                    if not opened["terms"]:
                        closed.add((card["story"], block["name"], opened["formula"]))
        for story, matrix, formula in sorted(closed):
            self.assertRegex(formula, r"^(given$|hidden by the causal mask$|0: )", (story, matrix))

    def test_19_wide_characters(self):
        """Also terminal_test.py: test_wide_characters."""
        text = self.succeeds("explain", "dog-bites-man", "--text", "犬 が 人").text
        rows = text[text.index("X1: "):].splitlines()[2:5]
        self.assertEqual(len({len(row) + sum(ord(c) > 0x2E80 for c in row) for row in rows}), 1, rows)

    def test_20_urls_and_lists_on_a_terminal(self):
        """terminal_test.py: test_nothing_is_torn. In a pipe, no line is longer than 100 columns but a path."""
        config = self.write("c.json", b'{"model_type": "llama", "head_dim": 64, "max_position_embeddings": 131072}')
        for arguments in (("list",), ("list", "rope"), ("list", "--scalings"), ("compare", config)):
            for line in run(*arguments).text.splitlines():
                self.assertTrue(len(line) <= 100 or line.strip().startswith("https://"), line)

    def test_21_control_c_ends_prove(self):
        """signals_test.py: test_prove, exit 130."""
        source = pathlib.Path(__file__).with_name("signals_test.py").read_text("utf-8")
        self.assertRegex(source, r"def test_prove[\s\S]+SIGINT")

    def test_left_column(self):
        """No sentence of the old ones in what a reader meets first."""
        values = [math.sin(i * 0.7) for i in range(8 * 32)]
        before = self.write("x.npy", npy("f32", (8, 32), values))
        after = self.path("y.npy")
        self.succeeds("apply", "rope", before, "-o", after, "--axes", "sd", "--layout", "interleaved")
        config = self.write("c.json", b'{"model_type": "llama", "head_dim": 64, "rope_theta": 500000}')
        outputs = [run(*arguments).text for arguments in (
            ("--help",), ("tour", "--help"), ("explain",), ("prove",), ("prove", "rope"), ("prove", "alibi"),
            ("inspect", config), ("check", "rope", before, after), ("diagnose", before, after),
            ("diagnose", before, before), ("list", "rope"), ("practice", "--list", "--no-progress"))]
        outputs += [run("explain", card["story"]).text for card in json.loads(run("explain", "--json").out)]
        outputs += [run(verb["name"], "--help").text for verb in json.loads(run("help", "--json").out)["verbs"]]
        outputs += [(CONTENT.parent / "README.md").read_text("utf-8")]
        for text in outputs:
            words = " ".join(text.split())
            for old in LEFT_COLUMN:
                self.assertNotRegex(words, rf"(?<!\w){re.escape(old)}(?!\w)")


if __name__ == "__main__":
    unittest.main()
