"""Words that a reader would have to translate stay out of what people read: strings of the program and the library,
comments of public headers, the Python package, content/, the explorer, the guides, README and CHANGELOG. The field's own word
is beside each.

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
    r"\bexplains every (number|value)\b": "reproduces every value",
    r"\bnever finish\b": "exceed the trained length",
    r"\b[Tt]he further, the less\b": "does similarity fall with distance",
    r"\bwhole turns left in\b": "not reduced mod 2π",
    r"\bfeatures of a head that (turn|rotate)\b": "rotary dimensions per head",
    r"\bpositions that are known\b": "largest supported length",
    r"\bas everybody\b|\banswers for\b": "as usual, knows",
    r"(?<=, )as (\d|[A-Z],[A-Z]|A:B)": "e.g.",
    r"\b[Ss]ame bytes\b": "bit-identical",
    r"(\d|f\}) %(?![\w(])": "85%, without a space",
    r"(?<!response )\b(is|are) an error\b": "is rejected, throws, raises",
    r"\bscores? (of [\w ]+ )?depends? only on (the|their) distance\b": "position enters the score only through the offset",
    r"\(--[a-z-]+ (replaces|does|keeps)\b": "use --force to overwrite it",
    r"\bpractise\b": "practice",
    r"\bmultiplied with\b": "multiplied by, dotted with",
    r"\bfeatures of a head\b": "head dimension",
    r"\bthat (does|do) not fit\b(?! in)": "is invalid",
    r", as (?!it )\w+ has (it|them)\b": "as in, as … does",
    r"\bLlama of (Hugging Face|Meta)\b": "Hugging Face's Llama",
    r"\bin place of (?!the |ids)": "instead of",
    r"\bopens? into\b": "shows",
    r"\{\d?\}: (has|contains|is|exists) ": "FILE has, FILE is, without a colon",
    r"\b(query|queries|head|heads|tokens?) sees? (the|all|keys|\{)": "attends to",
}
REFUSED_IN_PYTHON = {r"\bThrows\b": "Raises"}
PATTERNS = [(re.compile(pattern), better) for pattern, better in REFUSED.items()]
PYTHON_PATTERNS = PATTERNS + [(re.compile(pattern), better) for pattern, better in REFUSED_IN_PYTHON.items()]

# Turns of phrase that mean something else, each for a reason.
ALLOWED = [
    r"stands? for\b",     # an abbreviation
    r"in turns?\b",       # the unit, or one after the other
    r"cos\(|sin\(",       # never alone
]
SCRIPT_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\\n]|\\.)*)`")
STRING = re.compile(r'(?<!\\)"((?:[^"\\\n]|\\.)*)"')
# What is for developers of posenc alone.
INSIDE = ("docs/decisions/", "CONTRIBUTING.md", "benchmarks/")


def faults(text, patterns=PATTERNS):
    for pattern, better in patterns:
        for match in pattern.finditer(text):
            if not any(re.match(allowed, text[match.start():]) for allowed in ALLOWED):
                yield match.group(), better


def strings_of_code(text):
    """(line, text) of every literal with a space in it; what is torn over lines is one."""
    begin, joined = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith("#include") or "static_assert" in line:
            continue
        found = STRING.findall(re.sub(r"(^|\s)//[^\"]*$", "", line))
        is_more = line.lstrip().startswith('"') and joined
        if not is_more and joined:
            yield begin, joined
            joined = ""
        if found:
            begin = begin if is_more else number
            joined = joined + "".join(found) if is_more else " | ".join(found)
        elif joined:
            yield begin, joined
            joined = ""
    if joined:
        yield begin, joined


def comments_of_code(text):
    """(line, text) of every comment; a // inside a string is one too, which does no harm here."""
    is_open = False
    for number, line in enumerate(text.split("\n"), start=1):
        begin = 0 if is_open else min((at for at in (line.find("//"), line.find("/*")) if at >= 0), default=-1)
        if begin < 0:
            continue
        yield number, line[begin:]
        is_open = (is_open or line[begin:].startswith("/*")) and "*/" not in line[begin:]


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
    name = str(path)
    if path.suffix not in (".json", ".md", ".cpp", ".h", ".ts", ".py"):
        return
    text = (root / path).read_text(encoding="utf-8")
    if name.startswith("content/") and path.suffix == ".json":
        lines = text.split("\n")
        for found in texts_of_json(json.loads(text)):
            quoted = json.dumps(found, ensure_ascii=False)[1:-1]
            yield next((i for i, line in enumerate(lines, start=1) if quoted in line), 1), found
    elif path.suffix == ".md" and (name.startswith("docs/") or "/" not in name):
        yield from enumerate(text.split("\n"), start=1)
    elif path.suffix == ".ts":
        for number, line in enumerate(text.split("\n"), start=1):
            yield number, " | ".join(one or other for one, other in SCRIPT_STRING.findall(line) if " " in (one or other))
    elif path.suffix == ".py" and name.startswith("python/posenc/"):
        yield from enumerate(text.split("\n"), start=1)
    elif path.suffix in (".cpp", ".h") and path.parts[0] in ("cli", "src", "include", "lab"):
        yield from strings_of_code(text)
        if path.parts[0] == "include":
            yield from comments_of_code(text)


def check(root):
    report = Report()
    for path in files(root):
        if str(path).startswith(INSIDE):
            continue
        for line, text in texts(root, path):
            report.look()
            for word, better in faults(text, PYTHON_PATTERNS if path.suffix == ".py" else PATTERNS):
                report.problem(path, line, f'"{word}": {better}')
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
