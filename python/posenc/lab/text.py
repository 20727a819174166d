"""The text that the lab's large models learn: documentation and reference books of Debian's packages, as plain text.

    python -m posenc.lab.text FOLDER        # needs apt and dpkg-deb; about 3 minutes

downloads the packages of SOURCES (apt checks their hashes), takes the text out of them and writes FOLDER/lab-text.xz and
FOLDER/lab-text.json: the size and the hash of the text, and the version of each package. The text is not in the repository.
All packages are in Debian's section main, so that every text is free to copy; their licences are in the packages.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import json
import lzma
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

# Package, and the files of it that are read. Where a package has a text and its HTML, the text is read.
SOURCES = (
    ("anarchism", ("*/html/*.html", "*/html/*.html.gz")),
    ("apache2-doc", ("*/manual/en/*.html",)),
    ("cmake-doc", ("*/_sources/*.txt",)),
    ("debian-handbook", ("*/html/en-US/*.html",)),
    ("debian-policy", ("*/policy.txt.gz", "*/upgrading-checklist.txt.gz")),
    ("debian-reference-en", ("*.en.html", "*.en.txt.gz")),
    ("dict-foldoc", ("*.dict.dz",)),
    ("dict-gcide", ("*.dict.dz",)),
    ("git-doc", ("*.txt",)),
    ("installation-guide-amd64", ("*/en/*.html",)),
    ("jargon-text", ("*/jargon.txt.gz",)),
    ("libreoffice-help-en-us", ("*.html",)),
    ("maxima-doc", ("*/html/maxima_[0-9]*.html", "*/html/maxima_[A-Za-z]*.html")),
    ("octave-doc", ("*/octave.html/*.html", "*/html/*.html")),
    ("perl-doc", ("*.pod",)),
    ("postgresql-doc-15", ("*.html",)),
    ("python-django-doc", ("*.html",)),
    ("python3.11-doc", ("*/_sources/*.txt",)),
    ("sqlite3-doc", ("*.html", "*.html.gz")),
    ("vim-doc", ("*.html",)),
    ("zsh-doc", ("*.html",)),
)
SILENT = frozenset(("script", "style", "nav", "head", "title"))
BREAKS = frozenset(("p", "div", "li", "tr", "br", "h1", "h2", "h3", "h4", "h5", "dt", "dd", "pre", "table", "ul", "ol"))
LEAST_BYTES = 400  # shorter documents are indices and redirections
PIECE_BYTES = 1 << 16  # longer documents are cut at the end of a line, which spreads the dictionaries
VALIDATION_BYTES = 1 << 21  # the last documents, in an order that the hashes of the documents give


class _Words(HTMLParser):
    """The words of a page, a line for each block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in SILENT:
            self.silent += 1
        elif tag in BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in SILENT:
            self.silent = max(0, self.silent - 1)
        elif tag in BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.parts.append(data)


def plain(name: str, data: bytes) -> str:
    """The text of a file: HTML without its tags, and never more than one empty line in a row."""
    if name.endswith((".gz", ".dz")):
        data, name = gzip.decompress(data), name[:-3]
    text = data.decode("utf-8", "replace").replace("\r", "").replace("\xa0", " ")
    if name.endswith(".html"):
        words = _Words()
        words.feed(text)
        text = "".join(words.parts)
    text = re.sub(r"[ \t]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _documents(folder: Path, package: str, patterns: tuple[str, ...]) -> tuple[str, list[bytes]]:
    """The version of a package, and the text of each file that is wanted."""
    subprocess.run(["apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    deb = next(folder.glob(f"{package}_*.deb"))
    version = subprocess.run(["dpkg-deb", "-f", deb, "Version"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["dpkg-deb", "-x", deb, folder / package], check=True)
    found = []
    for path in sorted((folder / package).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not path.is_symlink() and any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            document = plain(name, path.read_bytes()).encode()
            if len(document) >= LEAST_BYTES:
                found.append(document)
    return version, found


def pieces(document: bytes) -> list[bytes]:
    """A document in pieces of at most PIECE_BYTES (more only if a line is longer), each of whole lines."""
    found = []
    while len(document) > PIECE_BYTES:
        cut = document.rfind(b"\n", 0, PIECE_BYTES) + 1 or document.find(b"\n", PIECE_BYTES) + 1 or len(document)
        found.append(document[:cut])
        document = document[cut:]
    return found + [document] if document else found


def joined(documents: list[bytes]) -> bytes:
    """The pieces of all documents in the order of their hashes, which mixes the packages; each one once."""
    by_hash = {hashlib.sha256(piece).digest(): piece for document in documents for piece in pieces(document)}
    return b"\n\n".join(piece for _, piece in sorted(by_hash.items()))


def make(out: Path) -> dict[str, object]:
    """Writes the text and what it was made of; returns the latter."""
    out.mkdir(parents=True, exist_ok=True)
    documents: list[bytes] = []
    packages: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for package, patterns in SOURCES:
            version, found = _documents(Path(scratch), package, patterns)
            packages[package] = {"version": version, "documents": len(found), "bytes": sum(map(len, found))}
            print(f"{package} {version}: {len(found)} documents, {sum(map(len, found)):,} bytes", flush=True)
            documents += found
    text = joined(documents)
    facts = {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest(), "packages": packages}
    (out / "lab-text.xz").write_bytes(lzma.compress(text, preset=6))
    (out / "lab-text.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    return facts


def read(path: Path) -> tuple[bytes, str]:
    """The text of lab-text.xz, or of any other file, and its hash. If lab-text.json is beside it, size and hash are checked."""
    data = path.read_bytes()
    text = lzma.decompress(data) if path.suffix == ".xz" else data
    digest = hashlib.sha256(text).hexdigest()
    note = path.with_suffix(".json")
    if note.is_file():
        wanted = json.loads(note.read_text("utf-8"))
        if (wanted["bytes"], wanted["sha256"]) != (len(text), digest):
            raise SystemExit(f"{path} is not the text that {note.name} describes (size or hash differ)")
    return text, digest


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m posenc.lab.text FOLDER")
    print(json.dumps(make(Path(sys.argv[1])), indent=1))
