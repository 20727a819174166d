"""docs/guide/schemes.md, made from content/scheme_pages.json and what `posenc list` says; guide_test checks that it is current.

POSENC=build/dev/cli/posenc python3 tests/cli/scheme_gallery.py     writes it
"""

import json
import pathlib

from program import run

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "schemes.md"
HEAD = """# All schemes

Every scheme of posenc, with its idea, formula, papers and pitfalls. `posenc list SCHEME` prints the same page with the fields and
their defaults, and [which encoding should I use?](which.md) compares them by task. This page is generated: edit
`content/scheme_pages.json`.
"""
ACTS = {"nothing": "no vector changes, or only the size of queries", "addition": "added to the tokens",
        "rotation": "rotates queries and keys", "bias": "added to the scores"}


def section(name, family, formula, used_by, page):
    papers = [f"{one['authors']}, {one['year']}: [{one['title']}]({one['url']})" for one in page["papers"]]
    lines = [f"## {name}", "", page["idea"], "", f"    {formula}", ""]
    lines += [f"- **Where**: {ACTS[family]}.", f"- **Used by**: {used_by}."]
    lines += [f"- **Paper**: {paper}." for paper in papers]
    lines += [f"- **Pitfall**: {pitfall}" for pitfall in page["pitfalls"]]
    lines += [f"- **Try**: `{command}`" for command in page["read"]]
    return "\n".join(lines) + "\n"


def gallery():
    pages = json.loads((ROOT / "content" / "scheme_pages.json").read_text("utf-8"))
    listed = json.loads(run("list", "--json").text)
    return HEAD + "".join("\n" + section(one["scheme"], one["family"], one["formula"], one["used_by"], pages[one["scheme"]])
                          for one in listed if one["scheme"] in pages)


if __name__ == "__main__":
    PAGE.write_text(gallery(), "utf-8")
