#!/usr/bin/env python3
"""packaging/site/reference.py OUT [PACKAGE]   writes OUT/*.html: the API reference, from the comments of the headers and the
docstrings of the Python package, for any static host. PACKAGE is the package of a build, which has the generated modules as
well (attention, the classes of schemes). Uses only Python's standard library; the same sources give the same bytes."""

import ast
import html
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STYLE = """:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
pre{overflow-x:auto;padding:.75rem;border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:.4rem;font-size:.85rem}
h2{margin-top:2.2rem;font-size:1.1rem}h2 a{color:inherit;text-decoration:none}ul{columns:3 14rem;padding-left:1.2rem}
.note{white-space:pre-wrap}"""


def page(title, body):
    return (f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
            f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n{body}\n</html>\n")


def anchor(name, seen):
    """A unique id for overloads too: rotate, rotate-2, …"""
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"


def section(name, words, code, seen):
    at = html.escape(anchor(name, seen))
    said = f'<p class="note">{html.escape(words)}</p>\n' if words else ""
    return f'<h2 id="{at}"><a href="#{at}">{html.escape(name)}</a></h2>\n{said}' + (f"<pre>{html.escape(code)}</pre>" if code else "")


def declaration(lines, at):
    """The declaration that begins in this line: up to its semicolon, or the end of its braces."""
    depth, code = 0, []
    for line in lines[at:]:
        code.append(line)
        bare = re.sub(r'"(?:\\.|[^"\\])*"|//.*|\'.\'', "", line)
        depth += bare.count("{") + bare.count("(") - bare.count("}") - bare.count(")")
        if depth == 0 and re.search(r"[;}]\s*$", bare):
            break
    return code


def name_of(code):
    text = re.sub(r"template\s*<.*?>\s*(?=\w)|\[\[.*?\]\]|//.*", "", "\n".join(code))
    kind = re.search(r"\b(?:struct|class|enum class|enum|concept|union)\s+(\w+)|\busing\s+(\w+)\s*=|#define\s+(\w+)", text)
    if kind and (text.find("(") < 0 or kind.start() < text.find("(")):
        return next(one for one in kind.groups() if one)
    called = re.search(r"(~?\w+|operator[^\s(]+)\s*\(", text)
    valued = re.search(r"(\w+)\s*(?:=|\{|;)", text)
    return (called if called and not (valued and valued.start() < called.start()) else valued or called).group(1)


def documented(text):
    """(name, comment, code) of every declaration of a header that has a /// or /** comment right above it, at the outermost level."""
    lines, found, at, words = text.splitlines(), [], 0, []
    while at < len(lines):
        line = lines[at]
        if line.startswith("///"):
            words.append(re.sub(r"^///<? ?", "", line))
        elif line.startswith("/**"):
            while True:
                words.append(re.sub(r"^\s*/?\*+/? ?|\s*\*/$", "", lines[at]))
                if "*/" in lines[at]:
                    break
                at += 1
        elif words and line.startswith("namespace "):
            found.append(("overview", "\n".join(words).strip(), ""))
            words = []
        elif words and line.strip() and not line.startswith(("//", "#if", "#endif", "}")):
            code = declaration(lines, at)
            found.append((name_of(code), "\n".join(words).strip(), "\n".join(code)))
            words, at = [], at + len(code) - 1
        else:
            words = []
        at += 1
    return found


def headers():
    for path in sorted((ROOT / "include/posenc").rglob("*.h")):
        found = documented(path.read_text("utf-8"))
        if found:
            yield path.relative_to(ROOT / "include").as_posix(), found


def whole_header(name, text):
    """A page that is the header itself, as it reads best, with a place to link to for each function; and their names."""
    names = re.findall(r"^POSENC_API .*?(\w+)\(", text, re.MULTILINE)
    code = html.escape(text, quote=False)
    for one in names:
        code = re.sub(rf"^(POSENC_API .*?)\b{one}\(", rf'\1<b id="{one}">{one}</b>(', code, count=1, flags=re.MULTILINE)
    return names, page(name, f'<p><a href="index.html">API reference</a></p>\n<h1>{name}</h1>\n<pre>{code}</pre>')


def members(node):
    """A class with its fields and the signatures and docstrings of its public methods."""
    lines = [f"class {node.name}({', '.join(map(ast.unparse, node.bases))}):" if node.bases else f"class {node.name}:"]
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_"):
            lines.append(f"    {ast.unparse(one)}")
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            lines += ["", *(f"    {line}" for line in signature(one).splitlines())]
            lines += [f"        {line}".rstrip() for line in (ast.get_docstring(one) or "").splitlines()]
    return "\n".join(lines)


def signature(node):
    marks = "".join(f"@{ast.unparse(one)}\n" for one in node.decorator_list if ast.unparse(one) in ("property", "staticmethod", "classmethod"))
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{marks}def {node.name}({ast.unparse(node.args)}){returns}"


def exported():
    """module → the names that posenc itself has from it."""
    tree = ast.parse((ROOT / "python/posenc/__init__.py").read_text("utf-8"))
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names.setdefault(node.module, set()).update(one.name for one in node.names)
    return names


def modules(package):
    public = exported()
    files = {path.name: path for folder in (ROOT / "python/posenc", package) if folder for path in sorted(Path(folder).glob("*.py"))}
    for name, path in sorted(files.items()):
        if name.startswith("_") and name != "__init__.py":
            continue
        tree = ast.parse(path.read_text("utf-8"))
        # what is not imported into posenc is a module of its own: posenc.torch …
        wanted = public.get(path.stem, {"*"} if path.stem in ("jax", "torch", "torch_distributed", "transformers") else set())
        found = [(node.name, ast.get_docstring(node) or "", members(node) if isinstance(node, ast.ClassDef) else signature(node))
                 for node in tree.body
                 if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and ast.get_docstring(node)
                 and wanted & {node.name, "*"}]
        if found or name == "__init__.py":
            yield "posenc" if name == "__init__.py" else f"posenc.{path.stem}", ast.get_docstring(tree) or "", found


def write(out, package=None):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    index = ["<h1>API reference</h1>", "<h2>C++ and C</h2>", "<p>Include <code>posenc/posenc.h</code> for all of C++, "
             "<code>posenc_c.h</code> for C.</p>"]
    pages = [(name, "", found) for name, found in headers()]
    names, text = whole_header("posenc/posenc_c.h", (ROOT / "include/posenc/posenc_c.h").read_text("utf-8"))
    (out / "posenc-posenc_c.html").write_text(text, "utf-8")
    links = "".join(f'<li><a href="posenc-posenc_c.html#{one}">{one}</a></li>' for one in names)
    index.append(f'<h3><a href="posenc-posenc_c.html">posenc/posenc_c.h</a></h3>\n<ul>{links}</ul>')
    python = list(modules(package))
    for group, title in ((pages, None), (python, "Python")):
        if title:
            index.append(f"<h2>{title}</h2>")
        for name, words, found in group:
            file, seen = name.replace("/", "-").removesuffix(".h") + (".html" if not title else "-py.html"), {}
            body = "\n".join(section(*one, seen) for one in found)
            said = f'<pre class="note">{html.escape(words)}</pre>\n' if words else ""
            (out / file).write_text(page(name, f'<p><a href="index.html">API reference</a></p>\n<h1>{html.escape(name)}</h1>\n{said}{body}'), "utf-8")
            seen = {}
            links = "".join(f'<li><a href="{file}#{(at := html.escape(anchor(one, seen)))}">{at}</a></li>' for one, _, _ in found)
            index.append(f'<h3><a href="{file}">{html.escape(name)}</a></h3>\n<ul>{links}</ul>')
    (out / "index.html").write_text(page("posenc: API reference", "\n".join(index)), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    write(*sys.argv[1:])
