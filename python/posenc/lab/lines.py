"""Line charts and maps as SVG, for the report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 820, 420, 70, 150, 40, 50
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")  # Okabe and Ito: told apart without red or green


@dataclass(frozen=True)
class Line:
    name: str
    points: list[tuple[float, float]]


def _ticks(low: float, high: float, log: bool) -> list[float]:
    if log:
        fine = (1, 2, 5) if high / low > 12 else (1, 1.5, 2, 3, 5, 7)
        steps = [2.0 ** e for e in range(20)] if low >= 500 else [10.0 ** e * m for e in range(-3, 7) for m in fine]
        return [one for one in steps if low * 0.999 <= one <= high * 1.001]
    size = 10 ** math.floor(math.log10((high - low) or 1))
    size = next(size * factor for factor in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (size * factor) <= 8)
    first = math.ceil(low / size - 1e-9)
    return [size * i for i in range(first, int(high / size + 1e-9) + 1)]


def chart(path: Path, title: str, x_label: str, y_label: str, lines: list[Line], *, log_x: bool = False, log_y: bool = False,
          rule: float | None = None) -> str:
    """Writes an SVG and returns its name. rule: a vertical line."""
    lines = [Line(line.name, [point for point in line.points if all(map(math.isfinite, point))]) for line in lines]  # a model may diverge
    lines = [line for line in lines if line.points] or [Line("nothing finite", [(1.0, 1.0)])]
    xs, ys = ([point[axis] for line in lines for point in line.points] for axis in (0, 1))
    ranges = [(min(one), max(one)) for one in (xs, ys)]
    (x0, x1), (y0, y1) = ((low, high if high > low else low + 1) for low, high in ranges)

    def place(value: float, low: float, high: float, log: bool) -> float:
        return (math.log(value / low) / math.log(high / low)) if log else (value - low) / (high - low)

    def at(x: float, y: float) -> tuple[float, float]:
        return (LEFT + (WIDTH - LEFT - RIGHT) * place(x, x0, x1, log_x), HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * place(y, y0, y1, log_y))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/><text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
             f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>',
             f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>']
    for tick in _ticks(x0, x1, log_x):
        x, _ = at(tick, y0)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eee"/><text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:,.0f}</text>')
    for tick in _ticks(y0, y1, log_y):
        _, y = at(x0, tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#eee"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.3g}</text>')
    if rule is not None and x0 < rule < x1:
        x, _ = at(rule, y0)
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#888" stroke-dasharray="4 3"/>')
    for i, line in enumerate(lines):
        colour, dash = COLOURS[i % len(COLOURS)], ' stroke-dasharray="6 3"' if i >= len(COLOURS) else ""
        places = [at(*point) for point in line.points]
        parts.append(f'<path d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in places)}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places]
        y = TOP + 12 + 18 * i
        parts.append(f'<path d="M{WIDTH - RIGHT + 14} {y - 4}h22" stroke="{colour}" stroke-width="2"{dash}/><text x="{WIDTH - RIGHT + 42}" y="{y}">{escape(line.name)}</text>')
    path.write_text("\n".join(parts) + "\n</svg>\n", "utf-8")
    return path.name


SHADES = 8  # of a map
MAP, GAP = 110, 14  # a map's side, and what is between maps


def _shades(triangle: list[int], cells: int) -> list[str]:
    """A path for each shade; each row of the map is as dark as its largest cell allows."""
    paths = [""] * SHADES
    start = 0
    for row in range(cells):
        values = triangle[start:start + row + 1]
        start += row + 1
        most = max(values) or 1
        for column, value in enumerate(values):
            shade = round(SHADES * value / most)
            if shade:
                paths[shade - 1] += f"M{column} {row}h1v1h-1z"
    return paths


def maps(path: Path, title: str, columns: list[str], rows: list[tuple[str, list[list[int]]]], rule: float | None = None) -> str:
    """Writes a grid of lower triangles as an SVG and returns its name. rule: where, as a part of a map's side, a line is drawn."""
    width, height = 100 + len(columns) * (MAP + GAP), 60 + len(rows) * (MAP + GAP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="#fff"/><text x="10" y="22" font-size="15">{escape(title)}</text>']
    parts += [f'<text x="{90 + i * (MAP + GAP)}" y="46">{escape(name)}</text>' for i, name in enumerate(columns)]
    for j, (name, triangles) in enumerate(rows):
        top = 54 + j * (MAP + GAP)
        parts.append(f'<text x="10" y="{top + MAP / 2:.0f}">{escape(name)}</text>')
        for i, triangle in enumerate(triangles):
            cells = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
            parts.append(f'<g transform="translate({90 + i * (MAP + GAP)} {top}) scale({MAP / cells:.4f})"><rect width="{cells}" height="{cells}" fill="#f4f4f4"/>')
            parts += [f'<path d="{d}" fill="#0072b2" opacity="{(k + 1) / SHADES}"/>' for k, d in enumerate(_shades(triangle, cells)) if d]
            if rule is not None:
                at = f"{rule * cells:g}"
                parts.append(f'<path d="M0 {at}H{cells}" stroke="#d55e00" stroke-width="{cells / MAP:.3f}" stroke-dasharray="{cells / 40:g}"/>')
            parts.append("</g>")
    path.write_text("\n".join(parts) + "\n</svg>\n", "utf-8")
    return path.name
