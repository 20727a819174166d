"""Looks at pictures: PNG decoded by hand, SVG as XML, PDF as far as it goes. Standard library only."""

import base64
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}"


class Png:
    """width, height, and pixel(x, y) → (red, green, blue)."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
        at, packed = 8, b""
        while at < len(data):
            (length,) = struct.unpack(">I", data[at : at + 4])
            kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
            (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
            assert check == zlib.crc32(kind + body), kind
            if kind == b"IHDR":
                self.width, self.height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
                assert depth == 8 and colour in (2, 6) and interlace == 0, (depth, colour, interlace)
                self.size = 3 if colour == 2 else 4
            elif kind == b"IDAT":
                packed += body
            at += 12 + length
        assert kind == b"IEND"
        self.rows = self.unfiltered(zlib.decompress(packed))

    def unfiltered(self, data):
        stride, size, rows = self.width * self.size, self.size, []
        assert len(data) == self.height * (stride + 1)
        above = bytearray(stride)
        for y in range(self.height):
            kind = data[y * (stride + 1)]
            row = bytearray(data[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
            if kind == 1:
                for i in range(size, stride):
                    row[i] = (row[i] + row[i - size]) & 255
            elif kind == 2:
                row = bytearray((a + b) & 255 for a, b in zip(row, above))
            elif kind == 3:
                for i in range(stride):
                    left = row[i - size] if i >= size else 0
                    row[i] = (row[i] + (left + above[i]) // 2) & 255
            elif kind == 4:
                for i in range(stride):
                    a, c = (row[i - size], above[i - size]) if i >= size else (0, 0)
                    b = above[i]
                    near = (abs(b - c), abs(a - c), abs(a + b - 2 * c))
                    row[i] = (row[i] + (a, b, c)[near.index(min(near))]) & 255
            rows.append(row)
            above = row
        return rows

    def pixel(self, x, y):
        return tuple(self.rows[y][x * self.size : x * self.size + 3])

    def colours(self):
        """How often each colour is there."""
        counts = {}
        for row in self.rows:
            for i in range(0, len(row), self.size):
                colour = bytes(row[i : i + 3])
                counts[colour] = counts.get(colour, 0) + 1
        return counts


class Svg:
    def __init__(self, data):
        self.root = ElementTree.fromstring(data)
        assert self.root.tag == SVG + "svg", self.root.tag
        self.size = (int(self.root.get("width")), int(self.root.get("height")))

    def texts(self):
        return ["".join(text.itertext()) for text in self.root.iter(SVG + "text")]

    def title(self):
        return self.root.find(SVG + "title").text

    def images(self):
        """(x, y, width, height) of each image, first to last."""
        return [tuple(float(image.get(key)) for key in ("x", "y", "width", "height"))
                for image in self.root.iter(SVG + "image")]

    def image(self, index):
        """The PNG inside."""
        image = list(self.root.iter(SVG + "image"))[index]
        kind, data = image.get(XLINK + "href").split(",", 1)
        assert kind == "data:image/png;base64", kind
        return Png(base64.b64decode(data))

    def lines(self, colour):
        """The points of every path of a colour, (red, green, blue)."""
        found = []
        for path in self.root.iter(SVG + "path"):
            numbers = re.findall(r"\d+", path.get("stroke", ""))
            if tuple(map(int, numbers)) != colour:
                continue
            points = re.findall(r"[ML]?(-?[\d.]+),(-?[\d.]+)", path.get("d"))
            found.append([(float(x), float(y)) for x, y in points])
        return found

    def places(self, text):
        """Where this text stands."""
        found = []
        for group in self.root.iter(SVG + "g"):
            for one in group.findall(SVG + "text"):
                if "".join(one.itertext()) == text:
                    x, y = re.match(r"translate\(([-\d.]+),([-\d.]+)\)", group.get("transform")).groups()
                    found.append((float(x), float(y)))
        return found


def pdf_size(data):
    """(width, height) of the one page, in points."""
    assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF")
    text = data
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        try:
            text += zlib.decompress(stream)
        except zlib.error:
            pass
    boxes = re.findall(rb"/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)\s*\]", text)
    assert boxes, "a page has a size"
    return float(boxes[0][0]), float(boxes[0][1])
