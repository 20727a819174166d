"""A text in the characters of a keyboard: plain_text.py FROM TO."""

import sys
import unicodedata

TYPED = {"—": "--", "“": '"', "”": '"', "‘": "'", "’": "'", "\r": ""}


def plain(text):
    for character, typed in TYPED.items():
        text = text.replace(character, typed)
    decomposed = unicodedata.normalize("NFKD", text)  # é becomes e and an accent, which goes
    return "".join(c for c in decomposed if c == "\n" or " " <= c < "\x7f")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source, open(sys.argv[2], "w", encoding="ascii") as target:
        target.write(plain(source.read()))
