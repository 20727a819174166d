"""What READMEs and the changelog state in numbers is so: the counts are those of the program ("23 schemes", "over 700 model types"),
the README's speeds those of benchmarks/README.md, and its error of float32 angles that of the program."""

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


def speeds():
    """{row: [[forward, with gradients] of no position, ALiBi, T5, cuDNN]} of the table of masks on an H200."""
    page = (ROOT / "benchmarks/README.md").read_text("utf-8").replace("**", "")
    table = page.partition("| | no position | ALiBi | T5, with its table's gradient | cuDNN, no position |\n")[2].partition("\n\n")[0]
    found = {}
    for line in table.splitlines()[1:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found[name] = [[int(number) for number in cell.split(" / ")] for cell in cells if cell]
    return found


def slower(rows):
    """The ratios to cuDNN without position that are below 1, as the README groups them."""
    groups = {}
    for name, (*ours, cudnn) in ((name, cells) for name, cells in rows.items() if len(cells) == 4):
        for column, pair in enumerate(ours):
            for is_gradient, (number, bar) in enumerate(zip(pair, cudnn)):
                group = ("MLA" if "192/128" in name and is_gradient and name.startswith("causal") else
                         "64 without a mask" if name == "all keys, D64" else
                         "gradients of T5" if column == 2 and is_gradient else
                         "ALiBi without a mask" if column == 1 and name.startswith("all keys") and not is_gradient else "other")
                if number < bar:
                    groups.setdefault(group, []).append(number / bar)
    return {group: sorted({f"{min(ratios):.2f}", f"{max(ratios):.2f}"}) for group, ratios in groups.items()}


class Counts(ProgramTest):
    def test_the_speeds_of_the_readme(self):
        readme, rows = (ROOT / "README.md").read_text("utf-8"), speeds()
        none, alibi, t5, cudnn = ("{} / {}".format(*pair) for pair in rows["causal, D128"])
        self.assertIn(f"| no position | {none} | {cudnn} |", readme)
        self.assertIn(f"| ALiBi | {alibi} |", readme)
        self.assertIn(f"| T5, with the gradient of its table | {t5} |", readme)
        text, ranges = " ".join(readme.split()), {group: " to ".join(ends) for group, ends in slower(rows).items()}
        self.assertIn(f"causal gradients of MLA's head dimensions 192 and 128 ({ranges.pop('MLA')})", text)
        self.assertIn(f"head dimension 64 without a causal mask ({ranges.pop('64 without a mask')})", text)
        self.assertIn(f"other gradients of T5 ({ranges.pop('gradients of T5')})", text)
        self.assertIn(f"ALiBi without a causal mask ({ranges.pop('ALiBi without a mask')})", text)
        self.assertEqual(ranges, {}, "nothing else is slower")
        # of an earlier run, in the table before it
        page = (ROOT / "benchmarks/README.md").read_text("utf-8")
        forward, backward = re.findall(r"^\| RoPE[^|]*\| (\d+) \| ([\d.]+) \|", page, re.MULTILINE)
        self.assertIn(f"| RoPE inside (earlier run) | {forward[0]} / {backward[0]} |", readme)
        self.assertIn(f"gradients of RoPE ({backward[1]})", text)

    def test_the_error_of_float32_angles(self):
        stated = {re.search(r"off by up to ([\d.]+) at position ([\d,]+) \(width (\d+)\)", " ".join((ROOT / page).read_text("utf-8").split())).groups()
                  for page in ("README.md", "docs/guide/misconceptions.md")}
        self.assertEqual(len(stated), 1, stated)
        error, position, width = (number.replace(",", "") for number in stated.pop())
        exact, usual = ([float(number) for number in run("table", "sinusoidal", "--width", width, "--positions", position, "--dtype", "f64",
                                                         "--numerics", way, "--format", "csv", "-o", "-").text.split()[-1].split(",")]
                        for way in ("exact", "hf-f32"))
        self.assertEqual(f"{max(abs(a - b) for a, b in zip(exact, usual)):.2f}", error)

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
