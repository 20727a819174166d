"""Small tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


def table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """A table of names and values under a title."""
    body = "".join(f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(str(value))}</td></tr>'
                   for name, value in rows)
    return f"<table><caption>{escape(title)}</caption>{body}</table>"


def grid(title: str, head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table with a head row."""
    top = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><tr>{top}</tr>{body}</table>"
