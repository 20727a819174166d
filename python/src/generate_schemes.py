"""Writes posenc/schemes.py from the library's own list of schemes and fields. A build runs it; nobody edits the result.

generate_schemes.py posenc/schemes.py
"""

import json
import sys
from pathlib import Path

from posenc import _posenc

HEAD = '''"""Every scheme and every scaling of RoPE as a value. Made by generate_schemes.py from the library's own list."""

from __future__ import annotations

from typing import Literal, Optional, Tuple

from ._values import dataclass
from .scheme import Scaling, Scheme
'''

TAIL = '''

_SCHEMES: tuple[type[Scheme], ...] = ({schemes})
_SCALINGS: tuple[type[Scaling], ...] = ({scalings})
SCHEMES = {{kind.name: kind for kind in _SCHEMES}}
SCALINGS = {{kind.name: kind for kind in _SCALINGS}}
__all__ = [{all}]
'''

TYPES = {"integer": "int", "number": "float", "boolean": "bool", "integers": "Tuple[int, ...]",
         "numbers": "Tuple[float, ...]", "optional number": "Optional[float]", "scaling": "Optional[Scaling]"}


def class_name(name, is_scaling=False):
    if name == "none" and not is_scaling:  # None is a word of Python
        return "NoPosition"
    words = "".join(word[:1].upper() + word[1:] for word in name.split("-"))
    if is_scaling:
        words = ("No" if name == "none" else words) + "Scaling"
    return words


def type_of(field):
    if field["type"] == "choice":
        return f"Literal[{', '.join(json.dumps(choice) for choice in field['choices'])}]"
    return TYPES[field["type"]]


def default_of(field):
    value = field["default"]
    if field["type"] == "scaling":
        return "None"
    if isinstance(value, list):
        return "(" + "".join(f"{item!r}, " for item in value).strip() + ")"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def class_text(entry, base):
    lines = ["", "@dataclass(frozen=True, kw_only=True)", f"class {class_name(entry['name'], base == 'Scaling')}({base}):"]
    lines.append(f'    """{entry["formula"]}."""')
    lines.append("")
    for key in ("name", "family", "formula", "used_by"):
        if key in entry:
            lines.append(f"    {key} = {json.dumps(entry[key], ensure_ascii=False)}")
    if "trained_table" in entry:
        lines.append(f"    trained_table = {tuple(entry['trained_table'] or ())!r}")
    for field in entry["fields"]:
        lines.append(f"    {field['name']}: {type_of(field)} = {default_of(field)}  #: {field['help']}")
    return "\n".join(lines) + "\n"


def module():
    listed = json.loads(_posenc.schemes())
    schemes = [class_name(entry["name"]) for entry in listed["schemes"]]
    scalings = [class_name(entry["name"], True) for entry in listed["scalings"]]
    body = "\n".join([class_text(entry, "Scaling") for entry in listed["scalings"]] +
                     [class_text(entry, "Scheme") for entry in listed["schemes"]])
    tail = TAIL.format(schemes=", ".join(schemes), scalings=", ".join(scalings),
                       all=", ".join(f'"{name}"' for name in scalings + schemes))
    return HEAD + "\n" + body + tail


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(module(), encoding="utf-8")
