"""explain: every number is recomputed from formula and data; notes, cells, forms of output, refusals."""

import json
import math
import pathlib
import re
import unittest

import rotation_oracle
import story_oracle
from program import ProgramTest
from story_oracle import rounded

STORIES = story_oracle.STORIES | rotation_oracle.STORIES
CONTENT = pathlib.Path(__file__).parents[2] / "content" / "stories"
TOLERANCE = 1e-12
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]*\w)")


def content_of(name):
    return json.loads((CONTENT / f"{name}.json").read_text("utf-8"))


def blocks(story, kind):
    return [block for step in story["steps"] for block in step["blocks"] if block["kind"] == kind]


def facts_of(story):
    return [fact for block in blocks(story, "facts") for fact in block["facts"]]


class Recomputed(ProgramTest):
    """Each matrix and each fact has its counterpart in the oracle, and there are no others."""

    def story(self, *arguments):
        outcome = self.succeeds("explain", *arguments, "--json")
        self.assertEqual(outcome.err, "")
        return json.loads(outcome.out)

    def assert_near(self, got, expected, where):
        if isinstance(expected, float) or isinstance(got, float):
            self.assertLessEqual(abs(got - expected), TOLERANCE * max(1, abs(expected)), where)
        else:
            self.assertEqual((type(got), got), (type(expected), expected), where)

    def check(self, story, matrices, facts):
        shown = blocks(story, "matrix")
        self.assertEqual(sorted(matrix["name"] for matrix in shown), sorted(matrices))
        for matrix in shown:
            name, expected = matrix["name"], matrices[matrix["name"]]
            self.assertEqual(len(matrix["rows"]), len(expected), name)
            for label, got, wanted in zip(matrix["rows"], matrix["values"], expected):
                self.assertEqual(len(got), len(matrix["columns"]))
                self.assertEqual(len(got), len(wanted), name)
                for column, a, b in zip(matrix["columns"], got, wanted):
                    if b is None:
                        self.assertIsNone(a)
                    else:
                        self.assert_near(float(a), float(b), (name, label, column))
        got = facts_of(story)
        self.assertEqual([fact["name"] for fact in got], [name for name, _ in facts])
        for fact, (name, value) in zip(got, facts):
            self.assert_near(fact["value"], value, name)
            if isinstance(value, float) and not re.search("e-|^0$", fact["shown"]):
                unit = 10.0 ** -len(fact["shown"].partition(".")[2])
                self.assertLessEqual(abs(float(fact["shown"]) - value), 0.51 * unit, name)

    def check_prose(self, story, content, matrices, facts, said):
        """Every number in prose, captions and notes is in the template, or is what something computed rounds to."""
        templates = json.dumps({key: value for key, value in content.items() if key not in ("figure", "python", "gives")},
                               ensure_ascii=False)
        known = [value for matrix in matrices.values() for line in matrix for value in line if value is not None]
        known += [value for _, value in facts if isinstance(value, (int, float))] + said
        labels = {label for matrix in blocks(story, "matrix") for label in matrix["rows"] + matrix["columns"]}
        texts = [text for step in story["steps"] for text in (step["heading"], step["text"])]
        texts += [note["text"] for note in blocks(story, "note") if not note["misprints"]]
        for text in texts:
            for token in NUMBER.findall(text):
                digits = len(token.partition(".")[2])
                near = any(rounded(value, digits) == token or f"{value:.4g}" == token or f"{value:.2g}" == token
                           for value in known)
                self.assertTrue(near or token in labels or re.search(rf"(?<![\d.]){token}(?![\d.])", templates),
                                (token, text))

    def test_every_story(self):
        for name, recompute in STORIES.items():
            with self.subTest(name):
                content = content_of(name)
                matrices, facts, said = recompute(content)
                story = self.story(name)
                self.assertEqual((story["story"], story["title"]), (name, content["title"]))
                self.assertEqual(len(story["steps"]), len(content["steps"]))
                self.assertTrue(story["source"])
                self.check(story, matrices, facts)
                self.check_prose(story, content, matrices, facts, said)

    def test_figure_and_numpy(self):
        for name in STORIES:
            story, text = self.story(name), self.succeeds("explain", name).text
            self.assertEqual(self.succeeds("explain", name, "--python").text, story["python"])
            self.assertIn(f"\nIn numpy: posenc explain {name} --python\n", text)
            self.assertIn(f"```python\n{story['python']}```", self.succeeds("explain", name, "--markdown").text)
            self.assertIn(f"\nFigure:   posenc {story['figure']}\n", text)
            self.succeeds(*story["figure"].split(), "--quiet")
        self.refused("explain", "--python", says="needs a story")
        self.refused("explain", "rope", "--python", "--json", says="cannot be combined")

    def test_where_the_last_bucket_of_t5_begins(self):
        text = " ".join(self.succeeds("explain", "t5-buckets").text.split())
        self.assertIn("bucket 31, which holds every distance from 113 on.", text)
        self.assertIn("The last bucket of either direction starts at 91.", text)

    def test_own_sentence(self):
        for text in ("the cat saw the dog", "a b", "Ärger über öde Öfen", "one two three four five six seven eight nine"):
            matrices, facts, _ = story_oracle.dog_bites_man(content_of("dog-bites-man"), text)
            story = self.story("dog-bites-man", "--text", text)
            self.check(story, matrices, facts)
            self.assertIn(" ".join(reversed(text.split())), story["steps"][0]["text"])
            self.assertFalse(blocks(story, "errata"))

    def test_seats_of_ones_own(self):
        content = content_of("frank-and-alex")
        for key in ("x", "names"):
            content[key] = [content[key][i] for i in (0, 2, 1, 3)]
        matrices, facts, _ = story_oracle.frank_and_alex(content)
        for name in ("PQ", "PK", "PV"):  # what the source text says of its own seats
            del matrices[name]
        story = self.story("frank-and-alex", "--text", "Frank Daniel Emma Alex")
        self.check(story, matrices, facts)
        self.assertEqual(blocks(story, "errata"), [])
        seats = ("explain", "frank-and-alex", "--text")
        for text in ("Frank Emma", "Frank Emma Daniel Alex Frank", "Frank Emma Daniel Bob", "Frank Frank Daniel Alex"):
            self.refused(*seats, text, says="must name Frank, Emma, Daniel, Alex once each, in the order of their seats")
        self.refused(*seats, "Alex Emma Daniel Frank", "--other", "Frank Emma Daniel Alex", says="one order of seats, not two")

    def test_base_width_and_concatenation(self):
        content = content_of("frank-and-alex")
        for base, width, concatenated in ((500, 6, False), (10000, 4, False), (10000, 6, True), (2.5, 2, True), (1e8, 4, True)):
            flags = ["--base", base] * (base != 10000) + ["--width", width] * (width != 6) + ["--concatenate"] * concatenated
            with self.subTest(flags):
                matrices, facts, said = story_oracle.frank_and_alex(content, base, width, concatenated)
                for name in ("PQ", "PK", "PV"):  # what the source text says of its own example
                    del matrices[name]
                story = self.story("frank-and-alex", *flags)
                self.check(story, matrices, facts)
                self.check_prose(story, content, matrices, facts, said)
                self.assertEqual(blocks(story, "errata"), [])
                heading = "Concatenate the positions" if concatenated else "Add the positions"
                self.assertTrue(any(step["heading"].startswith(heading) for step in story["steps"]))
        # the defaults, given, are the defaults
        self.assertEqual(self.story("frank-and-alex", "--base", 10000, "--width", 6), self.story("frank-and-alex"))
        # with the same weights for both halves: other inputs, the same queries
        both = {one["name"]: one for one in blocks(self.story("frank-and-alex", "--concatenate"), "matrix")}
        self.assertEqual(both["X'"]["columns"][5:8], ["vibe", "d0", "d1"])
        cell = json.loads(self.succeeds("explain", "frank-and-alex", "--concatenate", "--cell", "Q' Alex upscale", "--json").out)
        self.assertEqual(len(cell["terms"]), 12)
        self.assertEqual([one["name"] for one in cell["terms"][6]], ["X'[Alex, d0]", "W_Q'[d0, upscale]"])
        self.refused("explain", "frank-and-alex", "--width", 5, says="width: must be an even number from 2 to 6 but is 5")
        self.refused("explain", "frank-and-alex", "--width", 8, says="is not from 2 to 6")
        self.refused("explain", "frank-and-alex", "--base", 0.5, says="--base")
        for flags in (("--base", 500), ("--width", 4), ("--concatenate",)):
            self.refused("explain", "rope", *flags, says=f"{flags[0]} works only with frank-and-alex, not with rope")
            self.refused("explain", *flags, says=f"{flags[0]} needs a story")

    def test_two_own_sentences(self):
        one, other = "Emma likes Alex but not Frank", "Frank likes Emma but not Alex"
        matrices, facts, _ = story_oracle.dog_bites_man(content_of("dog-bites-man"), one, other)
        story = self.story("dog-bites-man", "--text", one, "--other", other)
        self.check(story, matrices, facts)
        self.assertIn(other, story["steps"][0]["text"])

    def test_own_vector(self):
        start = [0.5, -1, 2, 0.25]
        for name, recompute in (("cat-sat", story_oracle.cat_sat), ("shift", story_oracle.shift)):
            matrices, facts, _ = recompute(content_of(name), start)
            self.check(self.story(name, "--start", ",".join(map(str, start))), matrices, facts)

    def test_statements_of_the_source_that_the_numbers_contradict(self):
        notes = " ".join(note["text"] for note in blocks(self.story("frank-and-alex"), "note"))
        for claim in ("d1 = -0.990 adds -0.109 to it; d5 adds 0.980", "rises from 0.700 to 0.931", "rises from 0.525 to 1.627",
                      "It rises from 2.030 to 2.291", "The mean |P| is 0.571, larger than the mean |X|, 0.507",
                      "Emma's output is (1.409, 1.296, 0.971) with Frank and (1.144, 1.294, 1.180) without him"):
            self.assertIn(claim, notes)

    def test_what_the_new_stories_are_about(self):
        def matrix(story, name):
            return next(m["values"] for m in blocks(self.story(story), "matrix") if m["name"] == name)

        (one, two), (free_one, free_two) = matrix("nope", "R")
        self.assertLess(max(one, free_one, free_two), 1e-15, "one causal layer cannot tell; without a mask none can")
        self.assertGreater(two, 1e-3, "two causal layers can")
        proof = {fact["name"]: fact["value"] for fact in facts_of(self.story("permutation-proof"))}
        self.assertGreater(proof["largest |Att(Π·X + P) − Π·Att(X + P)|"], 0.05)
        back = {fact["name"]: fact["value"] for fact in facts_of(self.story("look-back"))}
        self.assertGreater(back["smallest of these weights"], 0.9)
        scores = [line[-1] for line in matrix("why-inside-attention", "T")]
        self.assertGreater(max(scores) - min(scores), 0.1, "added positions: the score depends on the place")
        growth = matrix("who-extrapolates", "G")
        self.assertTrue(all(a is None or (a > 1.1) == (b > 1.1) for a, b in growth), "both agree on who holds")
        extended = matrix("context-extension", "E")
        self.assertTrue(all(line[0] < 1.001 for line in extended), "linear: every angle was seen")

    def test_what_the_stories_of_rotations_are_about(self):
        def matrix(story, name):
            return next(m["values"] for m in blocks(self.story(story), "matrix") if m["name"] == name)

        exact, narrow = zip(*matrix("float32-angles", "R"))
        self.assertLess(max(exact) - min(exact), 1e-12, "exact angles: one score everywhere")
        self.assertGreater(max(narrow) - min(narrow), 0.05, "float32 angles: another score far out")
        left, above = zip(*matrix("patches", "F"))
        self.assertEqual(len({round(x, 9) for x in left}), 1)
        self.assertGreater(max(above) - min(above), 0.5, "one number per patch: another score at another width")
        same, rotated, opposite = zip(*matrix("decay", "K"))
        around = content_of("decay")["around"]
        self.assertEqual(around[rotated.index(max(rotated))], content_of("decay")["ahead"])
        self.assertEqual(same.index(max(same)), opposite.index(min(opposite)), "one falls where the other rises")
        facts = {fact["name"]: fact["value"] for fact in facts_of(self.story("nope-layers"))}
        self.assertLess(facts['‖N1 − N2‖ of "now"'], 1e-15, "a layer without position alone cannot tell")
        self.assertGreater(facts['‖U1 − U2‖ of "now"'], 0.01, "above a layer with RoPE it can")
        self.assertTrue(all(with_factor >= plain for plain, _, with_factor in matrix("nope-layers", "W")))

    def test_what_the_stories_are_about(self):
        dog = {fact["name"]: fact["value"] for fact in facts_of(self.story("dog-bites-man"))}
        residuals = self.story("dog-bites-man")["steps"][-1]["blocks"][0]["values"]
        self.assertLess(residuals[0][0], 1e-15, "equivariant without position")
        self.assertGreater(residuals[1][0], 0.1, "a causal mask alone breaks it")
        self.assertGreater(residuals[2][0], 0.1, "so does position")
        self.assertGreater(dog["largest |Att(Π·X) − Att(X)|"], 0.1, "not invariant")
        dots = [line[2] for matrix in blocks(self.story("dot-product"), "matrix") if matrix["name"] == "L"
                for line in matrix["values"]]
        self.assertEqual((rounded(dots[6], 3), rounded(dots[1], 3)), ("3.784", "3.535"))


class Misprints(ProgramTest):
    def notes(self, name):
        story = json.loads(self.succeeds("explain", name, "--json").out)
        return [misprint for block in blocks(story, "errata") for misprint in block["misprints"]]

    def test_exactly_those_that_differ(self):
        for name, recompute in STORIES.items():
            content = content_of(name)
            matrices, facts, _ = recompute(content)
            wanted = []
            for matrix, lines in content.get("printed", {}).items():
                for line, values in zip(lines, matrices[matrix]):
                    for printed, value in zip(line, values):
                        if printed and rounded(value, len(printed.partition(".")[2])) != printed:
                            wanted.append((matrix, printed))
            got = [(misprint["matrix"], misprint["printed"]) for misprint in self.notes(name) if misprint["matrix"]]
            self.assertEqual(sorted(got), sorted(wanted), name)

    def test_frank_and_alex(self):
        wrong = {(m["row"], m["column"]): (rounded(m["value"], 3), m["printed"])
                 for m in self.notes("frank-and-alex") if m["matrix"] == "K'" and not m["rounding"]}
        self.assertEqual(wrong, {("Frank", "knows-street-stall"): ("5.251", "5.271"),
                                 ("Frank", "knows-upscale"): ("1.862", "1.703"),
                                 ("Alex", "knows-street-stall"): ("2.546", "2.565"),
                                 ("Alex", "knows-upscale"): ("1.726", "1.577")})
        text = self.succeeds("explain", "frank-and-alex", "--errata").text
        self.assertRegex(text, r"Frank +5\.251\* +1\.862\*\n")
        self.assertRegex(text, r"Alex +2\.546\* +1\.726\*\n")
        self.assertIn("(2.884, 0.474)", text)
        self.assertEqual(text.count("*"), 4)

    def test_the_others(self):
        cat = {(m["row"], m["column"]): rounded(m["value"], 3) for m in self.notes("cat-sat") if m["matrix"] == "X'"}
        self.assertEqual(cat, {("cat", "d3"): "1.100", ("sat", "d3"): "0.500"})
        shift = self.succeeds("explain", "shift", "--errata").text
        self.assertIn("distance from cat to sat: 8, not 9", " ".join(shift.split()))
        self.assertIn("shortest wavelength in positions: 6.28, not 2", " ".join(shift.split()))
        dog = " ".join(self.succeeds("explain", "dog-bites-man", "--errata").text.split())
        self.assertIn("The property is equivariance", dog)
        self.assertIn("18 of 18 differ", dog)

    def test_only_who_asks_for_errata_gets_them(self):
        for name in STORIES:
            for form in ([], ["--markdown"]):
                plain, full = (self.succeeds("explain", name, *form, *more).text for more in ([], ["--errata"]))
                self.assertNotRegex(" ".join(plain.split()), "source text|Errata|text this example follows|The text (says|calls)", name)
                self.assertEqual(plain != full, bool(self.notes(name)) or name == "dog-bites-man", name)
        self.refused("explain", "--errata", says="--errata needs a story")


class Cells(ProgramTest):
    def cell(self, story, cell, *more):
        return json.loads(self.succeeds("explain", story, "--cell", cell, "--json", *more).out)

    def value_of(self, cell):
        total = math.fsum(math.prod(factor["value"] for factor in term) for term in cell["terms"])
        if cell["function"]:
            total = {"sin": math.sin, "cos": math.cos, "√": math.sqrt, "abs": abs, "floor": math.floor}[cell["function"]](total)
        return total / (cell["divisor"]["value"] if cell["divisor"] else 1)

    def test_short_names_of_columns(self):
        cell = self.cell("frank-and-alex", "K' Frank upscale")
        self.assertEqual((cell["matrix"], cell["row"], cell["column"]), ("K'", "Frank", "knows-upscale"))
        self.assertEqual([[factor["name"] for factor in term] for term in cell["terms"]][0],
                         ["X'[Frank, spicy]", "W_K[spicy, knows-upscale]"])
        self.assertEqual(cell["misprint"]["printed"], "1.703")
        self.assertNotIn("1.703", self.succeeds("explain", "frank-and-alex", "--cell", "K' Frank upscale").text)
        text = self.succeeds("explain", "frank-and-alex", "--cell", "K' Frank upscale", "--errata").text
        self.assertIn("K'[Frank, knows-upscale] = 1.862", text)
        self.assertIn("1.080 × 0.990 = 1.069", text)
        self.assertIn("prints 1.703", text)

    def test_one_of_every_kind(self):
        opened = {"frank-and-alex": ["P 3 d2", "P 3 d3", "X' Emma cozy", "Q' Daniel upscale", "K' Alex street-stall",
                                     "V' Alex budget", "S' Frank Emma", "A' Daniel Alex", "O' Emma sichuan", "S Frank Alex"],
                  "dog-bites-man": ["S1 dog dog", "A1 dog man", "A1m man bites", "A2' dog man", "O2m dog d0", "X2' man d1"],
                  "cat-sat": ["P 1 d3", "X' cat d3"], "shift": ["MP 7 d1", "P+ 100 d0", "M10 d0 d1"],
                  "rope": ["Rq 13 d0", "Rq 13 d1", "Rk 1000 d3", "S 13 10"], "dot-product": ["P 9 d5"]}
        for story, cells in opened.items():
            matrices = {m["name"]: m for m in blocks(json.loads(self.succeeds("explain", story, "--json").out), "matrix")}
            for name in cells:
                cell = self.cell(story, name)
                matrix = matrices[cell["matrix"]]
                value = matrix["values"][matrix["rows"].index(cell["row"])][matrix["columns"].index(cell["column"])]
                self.assertEqual(cell["value"], value)
                self.assertTrue(cell["terms"], name)
                self.assertAlmostEqual(self.value_of(cell), value, delta=1e-12, msg=f"{story} {name}")
                # the factors are cells of other matrices
                for factor in (factor for term in cell["terms"] for factor in term):
                    found = re.fullmatch(r"([^\[ ^]+)\[([^,]+), ([^\]]+)\]", factor["name"])
                    if found:
                        source = matrices[found[1]]
                        at = source["values"][source["rows"].index(found[2])][source["columns"].index(found[3])]
                        self.assertEqual(factor["value"], at, factor["name"])

    def test_the_notation_that_is_printed(self):
        printed = self.cell("frank-and-alex", "K'[Frank, knows-upscale]")
        self.assertEqual(printed, self.cell("frank-and-alex", "K' Frank upscale"))
        for factor in (factor for term in printed["terms"] for factor in term):
            self.assertEqual(self.cell("frank-and-alex", factor["name"])["value"], factor["value"])

    def test_cells_open_down_to_numbers(self):
        """These had a phrase where numbers belong."""
        opened = {"dot-product": ["T pair0 sum", "T pair1 cos(m−n)", "D 3 4", "L 6 smallest", "L 6 sum-of-cosines",
                                  "G 2 from-1000000"],
                  "shift": ["M d0 d0", "M d1 d0", "W pair1 wavelength", "T 7 cos0", "T 7 sin1", "N d0 d1"],
                  "rope": ["Fq 13 pair1", "L 3 10", "C 3 score"], "frank-and-alex": ["D Q with-position", "O- Emma budget"],
                  "cat-sat": ["E cat@1 d0", "B 2 d0", "C 2 d1"], "dog-bites-man": ["R position residual"],
                  "learned-or-sinusoidal": ["G 1 d0", "E' 2 d3", "N sinusoidal smallest"], "alibi": ["A head3 2", "H head0 half-life"],
                  "t5-buckets": ["D 50 bucket", "E 9 ahead"], "kv-cache": ["K- 2 d0", "C 4 1"], "look-back": ["W_K d0 d1"],
                  "context-extension": ["E pair63 yarn"], "why-inside-attention": ["T 7-5 score", "Rq 7 d0", "Rk 50 d1"], "nope": ["R causal two-layers"],
                  "who-extrapolates": ["G rope published", "G alibi here", "A head1 share", "W published growth"]}
        for story, cells in opened.items():
            for name in cells:
                cell = self.cell(story, name)
                self.assertTrue(cell["terms"], (story, name))
                self.assertAlmostEqual(self.value_of(cell), cell["value"], delta=1e-9, msg=(story, name))

    def test_softmax_with_its_sum(self):
        for story, name in (("frank-and-alex", "A' Daniel Alex"), ("dog-bites-man", "A1m man bites")):
            cell = self.cell(story, name)
            self.assertAlmostEqual(math.fsum(term["value"] for term in cell["divisor_terms"]), cell["divisor"]["value"])
            self.assertEqual(len(cell["divisor_terms"]), 4 if story == "frank-and-alex" else 3)
            text = self.succeeds("explain", story, "--cell", name).text
            self.assertEqual(text.count("in Σ: e^("), len(cell["divisor_terms"]))

    def test_cells_without_products(self):
        self.assertEqual(self.cell("frank-and-alex", "X Frank spicy")["formula"], "given")
        self.assertEqual(self.cell("dog-bites-man", "A1m dog man")["formula"], "hidden by the causal mask")
        self.assertEqual(self.cell("dog-bites-man", "A1m dog man")["terms"], [])

    def test_wrong_cells(self):
        explain = ("explain", "frank-and-alex", "--cell")
        self.refused(*explain, "K' Frank", says="'K' Frank' is not MATRIX ROW COLUMN")
        self.refused(*explain, "J Frank upscale", says="frank-and-alex has no matrix 'J' (choose from: X, W_Q")
        self.refused(*explain, "K' Frnak upscale", says="K' has no row 'Frnak' (did you mean 'Frank'?)")
        self.refused(*explain, "K' Frank spicy", says="K' has no column 'spicy' (choose from: knows-street-stall")
        self.refused(*explain, "K' Frank knows", says="no column 'knows'")
        self.refused("explain", "dot-product", "--cell", "D 13 13", says="is empty: the matrix has no such cell")
        self.refused(*explain, "", says="--cell is empty")


class Forms(ProgramTest):
    def test_list(self):
        text = self.succeeds("explain").text
        cards = json.loads(self.succeeds("explain", "--json").out)
        topics = json.loads((CONTENT.parent / "topics.json").read_text("utf-8"))["topics"]
        self.assertEqual([card["story"] for card in cards], [story for topic in topics for story in topic["stories"]])
        self.assertEqual({card["story"] for card in cards}, set(STORIES))
        for card in cards:
            self.assertEqual(card["summary"], content_of(card["story"])["summary"])
            self.assertRegex(text, rf"(?m)^{card['story']} ")
        self.assertIn("- `rope`: ", self.succeeds("explain", "--markdown").text)

    def test_text_fits_and_is_plain(self):
        for name in STORIES:
            text = self.succeeds("explain", name).text
            self.assertNotIn("\x1b", text)
            story = json.loads(self.succeeds("explain", name, "--json").out)
            words = set(text.replace("*", " ").split())
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)
                self.assertEqual(line, line.rstrip())
            for matrix in blocks(story, "matrix"):
                cells = {rounded(v, matrix["digits"]) for row in matrix["values"] for v in row if v is not None}
                self.assertLessEqual(cells, words, (name, matrix["name"]))

    def test_digits(self):
        text = self.succeeds("explain", "frank-and-alex", "--digits", 6, "--errata").text
        self.assertIn("5.251062", text)
        self.assertIn("5.271", text, "what was printed stays as it was printed")
        self.assertNotIn(".", re.search(r"Frank +(\S+)", self.succeeds("explain", "frank-and-alex", "--digits", 0).text)[1])
        for digits, says in ((-1, "is not from 0 to 17"), (18, "is not from 0 to 17"), ("x", "is not an integer")):
            self.refused("explain", "rope", f"--digits={digits}", says=says)

    def test_markdown(self):
        for name, more in [(name, ()) for name in STORIES] + [("dog-bites-man", ("--text", "a|b *c* _d_ [e](f) `g`"))]:
            text = self.succeeds("explain", name, "--markdown", "--errata", *more).text
            story = json.loads(self.succeeds("explain", name, "--json", *more).out)
            lines = text.splitlines()
            self.assertEqual(sum(line.startswith("# ") for line in lines), 1)
            self.assertEqual(sum(re.match(r"## \d", line) is not None for line in lines), len(story["steps"]))
            self.assertEqual(sum(line.startswith("```") for line in lines) % 2, 0)
            tables = re.findall(r"(?m)(?:^\|.*\n)+", text)
            self.assertEqual(len(tables), len(blocks(story, "matrix")) + len(blocks(story, "errata")))
            for table, matrix in zip(tables, blocks(story, "matrix")):
                counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
                self.assertEqual(counts, {len(matrix["columns"]) + 2})
                self.assertEqual(len(table.splitlines()), len(matrix["rows"]) + 2)
                self.assertRegex(table.splitlines()[1], r"^\|---\|(---:\|)+$")
        self.assertIn("prints 1.703", self.succeeds("explain", "frank-and-alex", "--cell", "K' Frank upscale", "--markdown", "--errata").text)

    def test_refusals(self):
        self.refused("explain", "frank-and-alec", says="unknown story 'frank-and-alec' (did you mean 'frank-and-alex'?)")
        self.refused("explain", "xyz", says="unknown story 'xyz' (choose from: dog-bites-man, permutation-proof")
        self.refused("explain", "rope", "shift", says="unexpected argument 'shift'")
        self.refused("explain", "rope", "--colur", says="unknown option --colur")
        self.refused("explain", "rope", "--json", "--markdown", says="cannot be combined")
        self.refused("explain", "rope", "--text", "a b", says="--text works only with dog-bites-man")
        self.refused("explain", "--cell", "a b c", says="--cell needs a story")
        self.refused("explain", "rope", "--start", "1,2,3,4", says="--start works only with cat-sat and shift")
        self.refused("explain", "cat-sat", "--start", "1,2,3", says="--start has 3 numbers; cat-sat needs 4")
        self.refused("explain", "cat-sat", "--start", "1,2,,4", says="--start")
        self.refused("explain", "shift", "--start", "1,1,1,1", says="--start needs at least two different numbers")
        self.refused("explain", "dog-bites-man", "--other", "b a", says="--other: needs --text")
        self.refused("explain", "dog-bites-man", "--text", "a b", "--other", "b c", says="must contain the same words")
        self.refused("explain", "dog-bites-man", "--text", "a b", "--other", "b a a", says="must contain the same words")
        dog = ("explain", "dog-bites-man", "--text")
        self.refused(*dog, "", says="--text is empty")
        self.refused(*dog, "one", says="needs 2 to 12 words")
        self.refused(*dog, "   ", says="needs 2 to 12 words")
        self.refused(*dog, " ".join("abcdefghijklm"), says="needs 2 to 12 words")
        self.refused(*dog, "a " + 25 * "b", says="at most 24 characters")
        self.refused(*dog, "a \x1b[31m", says="control character")
        self.refused(*dog, b"a \xff\xfe".decode("utf-8", "surrogateescape"), says="is not UTF-8")
        self.refused(*dog, b"a \xed\xa0\x80".decode("utf-8", "surrogateescape"), says="is not UTF-8")


class Content(unittest.TestCase):
    """The schema of content/stories: what every story has."""

    def test_schema(self):
        files = sorted(path.stem for path in CONTENT.glob("*.json"))
        self.assertEqual(files, sorted(STORIES))
        for name in files:
            content = content_of(name)
            for key in ("title", "summary", "source"):
                self.assertTrue(isinstance(content[key], str) and content[key])
            self.assertLessEqual(len(content["summary"]), 110)
            self.assertFalse(content["summary"].endswith("."))
            self.assertTrue(content["steps"])
            for step, entry in content["steps"].items():
                self.assertEqual(set(entry), {"heading", "text"}, (name, step))
                self.assertTrue(entry["text"].rstrip().endswith((".", ":", "?")), (name, step))
            for note in content.get("notes", {}).values():
                self.assertTrue(note.endswith("."))
            for group in ("printed", "illustrative"):
                for matrix, lines in content.get(group, {}).items():
                    self.assertEqual(len({len(line) for line in lines}), 1, (name, matrix))
                    for cell in (cell for line in lines for cell in line):
                        self.assertRegex(cell, r"^(-?\d+(\.\d+)?)?$")
            for value in content.get("printed_facts", {}).values():
                self.assertRegex(value, r"^\d+(\.\d+)?$")
            for key in ("x", "w_q", "w_k", "w_v", "target", "q", "k"):
                if isinstance(content.get(key), list):
                    self.assertEqual(len({len(line) for line in content[key]}), 1)


if __name__ == "__main__":
    unittest.main()
