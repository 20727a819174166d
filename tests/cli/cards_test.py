"""Cards for Anki and for paper: what the files hold, read by Python's own csv, zipfile and sqlite3."""

import csv
import hashlib
import html
import html.parser
import io
import json
import os
import re
import sqlite3
import unittest
import zipfile

from program import ProgramTest, run

EPOCH = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}


def without_markup(text):
    return html.unescape(re.sub(r"<[^>]*>", "", text))


class Cards(ProgramTest):
    def setUp(self):
        super().setUp()
        self.cards = json.loads(self.succeeds("practice", "--list", "--json").out)["cards"]

    def tsv(self, *arguments):
        text = self.succeeds("cards", "-o", "-", "--format", "tsv", *arguments).text
        lines = text.splitlines()
        headers = [line for line in lines if line.startswith("#")]
        return headers, list(csv.reader(lines[len(headers):], delimiter="\t", quoting=csv.QUOTE_NONE))

    def package(self, *arguments):
        path = self.path("deck.apkg")
        self.succeeds("cards", "-o", path, "--force", *arguments, env=EPOCH)
        with zipfile.ZipFile(path) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(sorted(archive.namelist()), ["collection.anki2", "media"])
            self.assertEqual(archive.read("media"), b"{}")
            self.write("collection.anki2", archive.read("collection.anki2"))
        connection = sqlite3.connect(self.path("collection.anki2"))
        self.addCleanup(connection.close)
        return connection


class Tsv(Cards):
    def test_headers_and_columns(self):
        headers, rows = self.tsv()
        self.assertEqual(headers, ["#separator:tab", "#html:true", "#notetype:Basic", "#guid column:1",
                                   "#tags column:4", "#deck column:5"])
        self.assertEqual(len(rows), len(self.cards))
        self.assertGreaterEqual(len(rows), 40)
        for row, card in zip(rows, self.cards):
            self.assertEqual(len(row), 5)
            self.assertEqual(without_markup(row[1]), card["front"].replace("`", ""))
            self.assertTrue(without_markup(row[2]).startswith(card["back"].replace("`", "")))
            self.assertEqual(row[3].split(), card["tags"])
            self.assertTrue(row[4].startswith("posenc::"))
            if card["tex"]:
                self.assertIn("\\[" + card["tex"] + "\\]", html.unescape(row[2]))

    def test_guids_follow_from_the_id_alone(self):
        _, rows = self.tsv("--deck", "Another name")
        for row, card in zip(rows, self.cards):
            self.assertEqual(row[0], hashlib.sha1(f"posenc/{card['id']}".encode()).hexdigest()[:16])
            self.assertTrue(row[4].startswith("Another name::"))
        self.assertEqual(len({row[0] for row in rows}), len(rows))

    def test_tag(self):
        _, rows = self.tsv("--tag", "alibi")
        self.assertTrue(rows)
        self.assertTrue(all("alibi" in row[3].split() for row in rows))


class Package(Cards):
    def test_schema(self):
        tables = {name: [row[1] for row in self.package().execute(f"PRAGMA table_info({name})")]
                  for name in ("col", "notes", "cards", "revlog", "graves")}
        self.assertEqual(tables["col"], "id crt mod scm ver dty usn ls conf models decks dconf tags".split())
        self.assertEqual(tables["notes"], "id guid mid mod usn tags flds sfld csum flags data".split())
        self.assertEqual(tables["cards"], "id nid did ord mod usn type queue due ivl factor reps lapses left odue odid "
                                          "flags data".split())
        self.assertEqual(tables["revlog"], "id cid usn ease ivl lastIvl factor time type".split())
        self.assertEqual(tables["graves"], "usn oid type".split())

    def test_integrity(self):
        self.assertEqual(self.package().execute("PRAGMA integrity_check").fetchall(), [("ok",)])

    def test_collection(self):
        ((version, conf, models, decks, options),) = self.package().execute("SELECT ver, conf, models, decks, dconf FROM col")
        self.assertEqual(version, 11)
        conf, models, decks, options = map(json.loads, (conf, models, decks, options))
        ((model_id, model),) = models.items()
        self.assertEqual(str(model["id"]), model_id)
        self.assertEqual(conf["curModel"], model_id)
        self.assertEqual([field["name"] for field in model["flds"]], ["Front", "Back"])
        self.assertIn("{{Front}}", model["tmpls"][0]["qfmt"])
        self.assertIn("{{Back}}", model["tmpls"][0]["afmt"])
        self.assertIn("1", decks)
        for deck_id, deck in decks.items():
            self.assertEqual(str(deck["id"]), deck_id)
            self.assertIn(str(deck["conf"]), options)
        self.assertIn("posenc", {deck["name"] for deck in decks.values()})

    def test_notes_and_cards(self):
        connection = self.package()
        ((model,), (decks,)) = [connection.execute(f"SELECT {name} FROM col").fetchone() for name in ("models", "decks")]
        model_id, decks = int(next(iter(json.loads(model)))), json.loads(decks)
        notes = connection.execute("SELECT id, guid, mid, mod, tags, flds, sfld, csum FROM notes").fetchall()
        self.assertEqual(len(notes), len(self.cards))
        by_guid = {row[0]: row for row in self.tsv()[1]}
        for note_id, guid, mid, mod, tags, fields, sort, checksum in notes:
            front, back = fields.split("\x1f")
            self.assertEqual([guid, front, back, tags.strip()], by_guid[guid][:4], "the same as in the text file")
            self.assertEqual((mid, mod), (model_id, 1700000000))
            self.assertEqual(sort, without_markup(front))
            self.assertEqual(checksum, int(hashlib.sha1(without_markup(front).encode()).hexdigest()[:8], 16))
            ((deck, order, kind, queue),) = connection.execute(
                "SELECT did, ord, type, queue FROM cards WHERE nid = ?", (note_id,))
            self.assertEqual(decks[str(deck)]["name"], by_guid[guid][4])
            self.assertEqual((order, kind, queue), (0, 0, 0), "new")
        self.assertEqual(connection.execute("SELECT count(*), count(DISTINCT due) FROM cards").fetchone(),
                         (len(notes), len(notes)))
        self.assertEqual(connection.execute("SELECT count(*) FROM revlog").fetchone(), (0,))

    def test_the_same_time_gives_the_same_bytes(self):
        self.package()
        first = self.read("deck.apkg")
        self.package()
        self.assertEqual(self.read("deck.apkg"), first)

    def test_ids_stay_when_the_deck_is_smaller(self):
        some = dict(self.package("--tag", "rope").execute("SELECT guid, id FROM notes"))
        every = dict(self.package().execute("SELECT guid, id FROM notes"))
        self.assertEqual(len(set(every.values())), len(every))
        self.assertLess(len(some), len(every))
        self.assertTrue(some.items() <= every.items())


class Structure(html.parser.HTMLParser):
    """Which ids stand on which sheet, and whether every element is closed."""

    VOID = {"meta", "br", "hr", "link", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.sheets, self.outside = [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.outside += [value for name, value in attributes.items() if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)
        if attributes.get("class") == "sheet":
            self.sheets.append([])
        if attributes.get("class", "").startswith("card"):
            self.sheets[-1].append(attributes.get("id"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Page(Cards):
    def page(self, *arguments):
        text = self.succeeds("cards", "-o", "-", "--format", "html", *arguments).text
        structure = Structure()
        structure.feed(text)
        self.assertEqual(structure.open, [])
        self.assertEqual(structure.outside, [], "one file, and nothing beside it")
        self.assertNotIn("http", text)
        self.assertNotIn("@import", text)
        return text, structure.sheets

    def test_one_to_a_page(self):
        _, sheets = self.page("--per-page", 1)
        expected = [[f"{card['id']}-{side}"] for card in self.cards for side in ("front", "back")]
        self.assertEqual(sheets, expected)

    def test_eight_to_a_page_with_mirrored_backs(self):
        text, sheets = self.page()
        self.assertEqual(len(sheets), 2 * -(-len(self.cards) // 8))
        ids = [card["id"] for card in self.cards]
        for front, back in zip(sheets[::2], sheets[1::2]):
            self.assertEqual((len(front), len(back)), (8, 8))
            for row in range(0, 8, 2):
                for place, mirrored in ((row, row + 1), (row + 1, row)):
                    name = front[place] and front[place].removesuffix("-front")
                    self.assertEqual(back[mirrored] and back[mirrored].removesuffix("-back"), name)
        fronts = [name.removesuffix("-front") for front in sheets[::2] for name in front if name]
        self.assertEqual(fronts, ids)
        self.assertIn("@page", text)
        self.assertIn("break-after: page", text)

    def test_what_a_card_says_is_escaped(self):
        text, _ = self.page("--deck", "<b>&\"quotes\"")
        self.assertIn("&lt;b&gt;&amp;&quot;quotes&quot;", text)
        self.assertNotIn("<b>", text)


class Worksheet(Cards):
    def sheet(self, *arguments):
        text = self.succeeds("cards", "--worksheet", "-o", "-", "--format", "html", *arguments).text
        structure = Structure()
        structure.feed(text)
        self.assertEqual((structure.open, structure.outside), ([], []))
        return text

    def test_every_question_has_its_answer_in_the_key(self):
        for seed, tag in ((1, ()), (7, ("--tag", "rope")), (9, ("--tag", "biases"))):
            text = self.sheet("--seed", seed, "--count", 12, *tag)
            asked, key = text.split('<section class="key">')
            ids = re.findall(r'<li id="([^"]+)">', asked)
            self.assertEqual([f"{name}-answer" for name in ids], re.findall(r'<li id="([^"]+)">', key))
            self.assertGreaterEqual(len(ids), 8)
            questions = {one["id"]: one for one in json.loads(self.succeeds("practice", "--list", "--json").out)["questions"]}
            for name, answer in zip(ids, re.findall(r'<li id="[^"]+-answer">(.*?)</li>', key, re.S)):
                if name in questions:
                    question = questions[name]
                    self.assertIn(question["answer"].replace("`", ""), without_markup(answer))
                    self.assertIn(question["source"], without_markup(answer))
                    self.assertNotIn(html.escape(question["answer"].replace("`", "")), asked)
                    # the letter of the key is that of the right choice
                    shown = re.search(rf'<li id="{name}">(.*?)</ol>', asked, re.S)
                    if question["choices"]:
                        choices = [without_markup(one).strip("\xa0 ") for one in re.findall(r"<li>(.*?)</li>", shown[1], re.S)]
                        letter = without_markup(answer)[0]
                        (right,) = (one["text"].replace("`", "") for one in question["choices"] if one["right"])
                        self.assertIn(f"{letter}{right}", choices)

    def test_fill_ins_are_those_of_practice(self):
        """The seed draws the numbers: the key has the answers that practice grades by."""
        text = self.sheet("--tag", "pe-value", "--seed", 5, "--count", 1)
        (item,) = json.loads(self.succeeds("practice", "--tag", "pe-value", "--seed", 5, "--count", 1, "--json").out)["items"]
        self.assertIn(html.escape(item["prompt"]), text)
        self.assertIn(f"<b>{item['shown']}</b>", text)

    def test_two_rows_to_fill_in(self):
        text = self.sheet("--tag", "sinusoidal", "--seed", 1)
        asked, key = text.split('<section class="key">')
        self.assertEqual(asked.count('<td class="blank"></td>'), 8)
        self.assertIn("PE(1) = (0.841, 0.540, 0.010, 1.000)", key)
        self.assertIn("PE(2) = (0.909, -0.416, 0.020, 1.000)", key)
        self.assertNotIn("0.909", asked)
        self.assertEqual(text.count("which columns change a lot"), 1, "the question is not asked twice")

    def test_paper(self):
        for paper, name in (("a4", "A4"), ("letter", "Letter")):
            self.assertIn(f"@page {{ size: {name} portrait", self.sheet("--paper", paper, "--seed", 1))
            page = self.succeeds("cards", "-o", "-", "--format", "html", "--paper", paper).text
            self.assertIn(f"@page {{ size: {name} portrait", page)
            self.assertIn("--height: " + {"a4": "297mm", "letter": "11in"}[paper], page)
        self.assertIn("--paper letter", self.sheet("--paper", "letter", "--seed", 1), "to print the same again")
        self.assertIn("break-before: page", self.sheet("--seed", 1), "the key is on a page of its own")

    def test_the_same_seed_gives_the_same_sheet(self):
        self.assertEqual(self.sheet("--seed", 4), self.sheet("--seed", 4))
        self.assertNotEqual(self.sheet("--seed", 4), self.sheet("--seed", 5))

    def test_refusals(self):
        self.refused("cards", "--worksheet", "-o", self.path("x.tsv"), says="must be an .html file")
        self.refused("cards", "--worksheet", "-o", self.path("x.html"), "--per-page", 8, says="--per-page")
        self.refused("cards", "--worksheet", "-o", self.path("x.html"), "--tag", "ropee", says="did you mean 'rope'?")
        self.refused("cards", "--worksheet", "-o", self.path("x.html"), "--count", 0, says="--count")
        self.refused("cards", "-o", self.path("x.html"), "--seed", 1, says="works only with --worksheet")
        self.refused("cards", "-o", self.path("x.html"), "--count", 1, says="works only with --worksheet")
        self.refused("cards", "-o", self.path("x.tsv"), "--paper", "a4", says="works only with .html")
        self.refused("cards", "-o", self.path("x.html"), "--paper", "a5", says="'a5' is not one of a4, letter")


class Refusals(Cards):
    def test_flags(self):
        self.refused("cards", says="-o FILE")
        self.refused("cards", "-o", self.path("x.pdf"), says=".tsv, .apkg or .html")
        self.refused("cards", "-o", "-", says="--format")
        self.refused("cards", "-o", "-", "--format", "doc", says="'doc' is not one of")
        self.refused("cards", "-o", self.path("x.html"), "--per-page", 3, says="'3' is not one of 1, 8")
        self.refused("cards", "-o", self.path("x.html"), "--per-page", "x", says="'x' is not one of 1, 8")
        self.refused("cards", "-o", self.path("x.tsv"), "--per-page", 8, says="works only with .html")
        self.refused("cards", "-o", self.path("x.tsv"), "--tag", "alibbi", says="did you mean 'alibi'?")
        self.refused("cards", "-o", self.path("x.tsv"), "--deck", "", says="--deck")
        self.refused("cards", "-o", self.path("x.tsv"), "--deck", "a\tb", says="control")
        self.refused("cards", "-o", self.path("x.apkg"), env={**os.environ, "SOURCE_DATE_EPOCH": "soon"}, says="soon")
        self.refused("cards", "extra", "-o", self.path("x.tsv"), says="unexpected argument")

    def test_files(self):
        self.write("x.tsv", b"mine")
        self.refused("cards", "-o", self.path("x.tsv"), says="already exists (use --force to overwrite)")
        self.assertEqual(self.read("x.tsv"), b"mine")
        self.refused("cards", "-o", self.folder + ".html/x.html", code=3, says="No such file")
        self.assertEqual(run("cards", "-o", self.path("x.tsv"), "--force").err,
                         f"posenc: wrote {self.path('x.tsv')}: {len(self.cards)} cards\n")
        self.assertEqual(run("cards", "-o", self.path("x.tsv"), "--force", "--quiet").err, "")


if __name__ == "__main__":
    unittest.main()
