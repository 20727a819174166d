"""Words that a reader would have to translate stay out of content/ and the README. The field's own word stands beside
each.

words.py ROOT
"""

import json
import re
import sys
from pathlib import Path

from tree import Report, files

# What is refused, and what to write. "turn" is a unit, one full circle, and nothing else.
REFUSED = {
    r"\bturn(ed|ing)\b": "rotate, rotated",
    r"\bturns? (the|it|them|pairs|by|nothing|q|queries|keys|features)\b": "rotate",
    r"\bstands?\b(?!-alone)": "is, has position, aligned with",
    r"\bstood\b": "was",
    r"\b(said|says?) of\b": "claims about, shows",
    r"\ba matter of\b": "depends only on",
    r"\b(distance|m − n|m - n) alone\b(?! (is|are|determine))": "depends only on the distance",
    r"\bleft over\b": "residual",
    r"\baudible\b|\bcan be heard\b": "resolvable, distinguishable",
    r"\bblind\b": "permutation-equivariant",
    r"\bnearer\b": "closer",
    r"\bone's own\b": "your own",
    r"\bin the large\b": "overall",
    r"\b[Oo]ne reads\b": "it is often said",
    r"\bmust be said\b": "required for",
    r"\bstretch(ed|es|ing)?\b": "extend, extended",
    r"\b(the two|Frank and Alex) part\b": "become distinguishable",
    r"\bOnce more\b": "Try again",
    r"\b1 (radians|ulps)\b": "1 radian, 1 ulp",
    r"\bexclude each other\b": "cannot be combined",
    r"\bwhere it exists\b": "if it exists",
    r"(?<=, )as (\d|[A-Z],[A-Z]|A:B)": "e.g.",
}
PATTERNS = [(re.compile(pattern), better) for pattern, better in REFUSED.items()]

# Turns of phrase that mean something else, each for a reason.
ALLOWED = [
    r"stands? for\b",     # an abbreviation
    r"in turns?\b",       # the unit, or one after the other
    r"cos\(|sin\(",       # never alone
]


def faults(text):
    for pattern, better in PATTERNS:
        for match in pattern.finditer(text):
            if not any(re.match(allowed, text[match.start():]) for allowed in ALLOWED):
                yield match.group(), better


def texts_of_json(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_of_json(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of_json(inner)


def texts(root, path):
    text = (root / path).read_text(encoding="utf-8")
    lines = text.split("\n")
    if path.suffix == ".md":
        yield from enumerate(lines, start=1)
        return
    for found in texts_of_json(json.loads(text)):
        quoted = json.dumps(found, ensure_ascii=False)[1:-1]
        yield next((i for i, line in enumerate(lines, start=1) if quoted in line), 1), found


def check(root):
    report = Report()
    for path in files(root):
        is_content = path.parts[0] == "content" and path.suffix == ".json"
        if not is_content and str(path) != "README.md":
            continue
        for line, text in texts(root, path):
            report.look()
            for word, better in faults(text):
                report.problem(path, line, f'"{word}": {better}')
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
