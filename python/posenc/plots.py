"""Figures as SVG for notebooks and files. The numbers are the library's, those of `posenc plot`; rendered here as SVG."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal, Mapping, Sequence

from . import _posenc
from .scheme import Scheme, scheme as scheme_from

Kind = Literal["waves", "heatmap", "fingerprint", "phasors", "dots", "similarity", "decay", "bias", "scaling", "error", "query-factor", "grid", "ids"]
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 900, 64, 150, 28, 42
# Colours that people with any colour vision tell apart (Okabe and Ito, 2008).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


@dataclass(frozen=True)
class Plot:
    """A figure: `data` as `posenc plot --json` prints it, and its SVG, which a notebook shows."""

    data: Mapping[str, Any] = field(repr=False)

    @property
    def svg(self) -> str:
        return _svg(self.data)

    def save(self, path: str | Path) -> None:
        """Writes the SVG to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<figure {self.data['kind']}: {self.data['title']}>"


def plot(kind: Kind, *schemes: Scheme | str, zoom: tuple[int, int] | None = None, at: int | None = None,
         shift: int | None = None, features: Sequence[int] | None = None, numerics: str = "exact", length: int = 0,
         trained: int | None = None, factor: float = 8.0, lines: bool = False) -> Plot:
    """A figure of one or several schemes: posenc.plot("decay", posenc.Rope(dims=64)).

    kind: waves, heatmap, fingerprint, phasors, dots, similarity, decay, bias, scaling, error, query-factor, grid or ids; without schemes, the kind's own.
    zoom: positions (for decay, distances) from … to. at, shift: the position of fingerprint and phasors. features:
      columns of a table. trained, factor: for scaling. lines: for bias, lines against distance.
    Raises: Error for an unknown kind, and for schemes that it cannot show.
    """
    request: dict[str, Any] = {"numerics": numerics, "length": length, "factor": float(factor), "lines": lines}
    if schemes:
        request["schemes"] = [json.loads((one if isinstance(one, Scheme) else scheme_from(one)).to_json()) for one in schemes]
    for name, value in (("zoom", zoom), ("at", at), ("shift", shift), ("features", features), ("trained", trained)):
        if value is not None:
            request[name] = list(value) if isinstance(value, (tuple, list, range)) else value
    return Plot(json.loads(_posenc.figure(kind, json.dumps(request))))


# --- drawing ------------------------------------------------------------------------------------------------------


class _Scale:
    """From a value to a pixel."""

    def __init__(self, axis: Mapping[str, Any], start: float, end: float) -> None:
        self.is_log = axis["scale"] == "log" and axis["least"] > 0
        self.least, self.most = (math.log10(axis[name]) if self.is_log else axis[name] for name in ("least", "most"))
        self.start, self.end = start, end

    def __call__(self, value: float) -> float:
        if self.is_log:
            value = math.log10(value) if value > 0 else self.least
        share = (value - self.least) / ((self.most - self.least) or 1)
        return float(self.start + min(1.02, max(-0.02, share)) * (self.end - self.start))

    def ticks(self) -> list[tuple[float, str]]:
        if self.is_log:
            powers = range(math.ceil(self.least - 1e-9), math.floor(self.most + 1e-9) + 1)
            step = max(1, len(powers) // 6)
            return [(10.0**power, f"1e{power}") for power in powers[::step]]
        span = (self.most - self.least) or 1
        step_size = 10 ** math.floor(math.log10(span / 5))
        step_size *= next(factor for factor in (1, 2, 5, 10) if span / (step_size * factor) <= 7)
        first = math.ceil(self.least / step_size - 1e-9)
        last = math.floor(self.most / step_size + 1e-9)
        return [(i * step_size, f"{i * step_size:g}") for i in range(first, last + 1)]


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12, fill: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{escape(text)}</text>'


def _line_path(xs: Sequence[float], ys: Sequence[float | None], x: _Scale, y: _Scale) -> str:
    """A path with gaps where a value is missing."""
    path, is_down = [], False
    for at, value in zip(xs, ys):
        if value is None:
            is_down = False
            continue
        path.append(f"{'L' if is_down else 'M'}{x(at):.1f} {y(value):.1f}")
        is_down = True
    return "".join(path)


def _colour(value: float | None, least: float, most: float) -> str:
    """Blue below the middle, white there, red above; grey where there is no value."""
    if value is None:
        return "#bbb"
    share = min(1.0, max(0.0, (value - least) / ((most - least) or 1)))
    low, high, weight = ((33, 102, 172), (255, 255, 255), share * 2) if share < 0.5 else ((255, 255, 255), (178, 24, 43), share * 2 - 1)
    return "#" + "".join(f"{round(a + (b - a) * weight):02x}" for a, b in zip(low, high))


def _heat_map(heat: Mapping[str, Any], x: _Scale, y: _Scale, most: int) -> list[str]:
    columns, rows = heat["columns"], heat["rows"]
    # of more cells than a notebook can show, every n-th
    across, down = (max(1, math.ceil(len(cells) / most)) for cells in (columns, rows))
    width = abs(x.end - x.start) / max(1, len(columns)) * across
    height = abs(y.end - y.start) / max(1, len(rows)) * down
    cells = []
    for i in range(0, len(rows), down):
        for j in range(0, len(columns), across):
            cells.append(f'<rect x="{x(columns[j]) - width / 2:.1f}" y="{y(rows[i]) - height / 2:.1f}" width="{width + 0.5:.1f}" '
                         f'height="{height + 0.5:.1f}" fill="{_colour(heat["values"][i][j], heat["least"], heat["most"])}"/>')
    return cells


def _panel(panel: Mapping[str, Any], top: float, height: float) -> list[str]:
    x = _Scale(panel["x"], _LEFT, _WIDTH - _RIGHT)
    y = _Scale(panel["y"], top + height - _BOTTOM, top + _TOP)
    parts = [_text(_LEFT, top + _TOP - 8, panel["title"], size=13)] if panel["title"] else []
    for band in panel["bands"]:
        parts.append(f'<rect x="{x(band["from"]):.1f}" y="{y.end:.1f}" width="{max(0.0, x(band["to"]) - x(band["from"])):.1f}" '
                     f'height="{y.start - y.end:.1f}" fill="#eee"/>')
        parts.append(_text(x(band["from"]) + 4, y.end + 14, band["text"], size=11, fill="#777"))
    if "heat_map" in panel:
        parts += _heat_map(panel["heat_map"], x, y, 90 if height > 300 else 48)
    for value, text in x.ticks():
        parts.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{y.start:.1f}" y2="{y.start + 4:.1f}" stroke="#666"/>')
        parts.append(_text(x(value), y.start + 17, text, "middle", 11))
    for value, text in y.ticks():
        parts.append(f'<line x1="{_LEFT - 4}" x2="{_LEFT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#666"/>')
        parts.append(_text(_LEFT - 7, y(value) + 4, text, "end", 11))
    parts.append(f'<path d="M{_LEFT} {y.end:.1f}V{y.start:.1f}H{x.end:.1f}" fill="none" stroke="#666"/>')
    parts.append(_text((x.start + x.end) / 2, y.start + 34, panel["x"]["label"], "middle"))
    parts.append(f'<g transform="rotate(-90 14 {(y.start + y.end) / 2:.1f})">{_text(14, (y.start + y.end) / 2, panel["y"]["label"], "middle")}</g>')
    for rule in panel["rules"]:
        at = x(rule["at"]) if rule["axis"] == "x" else y(rule["at"])
        path = f"M{at:.1f} {y.start:.1f}V{y.end:.1f}" if rule["axis"] == "x" else f"M{_LEFT} {at:.1f}H{x.end:.1f}"
        parts.append(f'<path d="{path}" stroke="#999" stroke-dasharray="4 3"/>')
        parts.append(_text(at + 3, y.end + 12, rule["text"], size=11, fill="#777") if rule["axis"] == "x"
                     else _text(x.end - 3, at - 4, rule["text"], "end", 11, "#777"))
    taken: list[float] = []
    for number, series in enumerate((*panel["envelopes"], *panel["series"])):
        colour = _COLOURS[number % len(_COLOURS)]
        if "low" in series:
            points = [(at, low, high) for at, low, high in zip(series["x"], series["low"], series["high"]) if low is not None and high is not None]
            if not points:
                continue
            outline = [f"{x(at):.1f} {y(high):.1f}" for at, _, high in points] + [f"{x(at):.1f} {y(low):.1f}" for at, low, _ in reversed(points)]
            parts.append(f'<path d="M{"L".join(outline)}Z" fill="{colour}" fill-opacity="0.3"/>')
            end = y(points[-1][2])
        else:
            parts.append(f'<path d="{_line_path(series["x"], series["y"], x, y)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
            end = next((y(value) for value in reversed(series["y"]) if value is not None), y.start)
        if series["name"]:
            while any(abs(end - other) < 13 for other in taken):
                end += 13
            taken.append(end)
            parts.append(_text(x.end + 6, end + 4, series["name"], size=11, fill=colour))
    return parts


def _svg(figure: Mapping[str, Any]) -> str:
    panels = figure["panels"]
    height = 380.0 if len(panels) == 1 else 230.0
    head = 46.0 if figure["subtitle"] else 30.0
    total = head + height * len(panels) + (22 if figure["note"] else 4)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {total:.0f}" width="{_WIDTH}" height="{total:.0f}" '
             f'font-family="sans-serif" role="img"><title>{escape(figure["title"])}</title>'
             f'<rect width="100%" height="100%" fill="white"/>', _text(14, 20, figure["title"], size=15, fill="#111")]
    if figure["subtitle"]:
        parts.append(_text(14, 38, figure["subtitle"], fill="#555"))
    for number, panel in enumerate(panels):
        parts += _panel(panel, head + number * height, height)
    if figure["note"]:
        parts.append(_text(14, total - 8, figure["note"], size=11, fill="#555"))
    return "".join(parts) + "</svg>"


__all__ = ["Plot", "plot"]
