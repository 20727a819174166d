"""Links of the README and of docs/ lead somewhere: to a file of the tree, and to a heading of it if they name one. Every guide
is linked from docs/index.md.

links.py ROOT
"""

import re
import sys
from pathlib import Path

from tree import Report

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def prose(text):
    """The text with the lines of code blanked, so that line numbers stay."""
    return re.sub(r"^```.*?^```", lambda block: re.sub(r"[^\n]", "", block.group()), text, flags=re.MULTILINE | re.DOTALL)


def anchors(text):
    """The headings as GitHub names them."""
    heads = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def check(root):
    report = Report()
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    for page in pages:
        name = page.relative_to(root)
        text = prose(page.read_text(encoding="utf-8"))
        for match in LINK.finditer(re.sub(r"`[^`\n]*`", lambda code: " " * len(code.group()), text)):
            target, _, part = match.group(1).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            report.look()
            line = text.count("\n", 0, match.start()) + 1
            to = (page.parent / target).resolve() if target else page
            if not to.exists():
                report.problem(name, line, f"{match.group(1)}: there is no such file")
            elif part and part not in anchors(to.read_text(encoding="utf-8")):
                report.problem(name, line, f"{match.group(1)}: there is no such heading")
    index = root / "docs" / "index.md"
    linked = index.read_text(encoding="utf-8")
    for guide in sorted((root / "docs" / "guide").glob("*.md")):
        if f"](guide/{guide.name})" not in linked:
            report.problem("docs/index.md", 1, f"guide/{guide.name} is not linked")
    return report


if __name__ == "__main__":
    check(Path(sys.argv[1])).finish()
