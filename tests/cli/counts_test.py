"""The counts that READMEs and the changelog state are those of the program: "23 schemes", "over 700 model types"."""

import json
import pathlib
import re
import unittest

from program import ProgramTest, run

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ["README.md", "CHANGELOG.md", "python/README.md"]
STATED = re.compile(r"\b(over )?(\d+) ((?:flash )?cards|[a-z]+(?: types| examples)?)\b")


def data(*words):
    return json.loads(run(*words, "--json").text)


def counts():
    items = data("practice", "--list", "--no-progress")
    titles = (ROOT / "explorer/src/titles.ts").read_text("utf-8")
    found = {
        # bad ideas are shown for comparison, and "none" is no scaling
        "schemes": sum("bad idea" not in one["used_by"] for one in data("list")),
        "scalings": sum(one["scaling"] != "none" for one in data("list", "--scalings")),
        "properties": len(data("prove", "none", "--length", "8")["schemes"][0]["findings"]),
        "questions": len(items["questions"]),
        "cards": len(items["cards"]),
        "worked examples": len(data("explain")),
        "model types": len(data("list", "--families")),
        "pages": len(re.findall(r"^  \{ id: (?!.*isHidden)", titles, re.MULTILINE)),
    }
    return found | {"flash cards": found["cards"]}


def faults(text, right):
    """What a text states wrongly. "over 700" is right for 700 to 799: less would be modest, more is false."""
    for over, number, what in STATED.findall(text):
        if what in right:
            count = right[what] // 100 * 100 if over else right[what]
            if int(number) != count:
                yield f"{over}{number} {what}, counted {right[what]}"


class Counts(ProgramTest):
    def test_every_stated_count(self):
        right = counts()
        for page in PAGES:
            text = " ".join((ROOT / page).read_text("utf-8").split())
            self.assertEqual(list(faults(text, right)), [], page)
            self.assertRegex(text, STATED, page)

    def test_that_a_wrong_count_is_found(self):
        right = {"schemes": 23, "model types": 765}
        self.assertEqual(list(faults("23 schemes, over 700 model types, 5 tokens", right)), [])
        self.assertEqual(list(faults("24 schemes, over 800 model types", right)),
                         ["24 schemes, counted 23", "over 800 model types, counted 765"])


if __name__ == "__main__":
    unittest.main()
