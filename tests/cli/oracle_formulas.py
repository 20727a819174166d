"""The functions of content's templates once more, by Python's own mathematics: nothing is shared with the library."""

import math
import re
import struct

PI = math.pi


def frequency_of(dims, pair, base=10000.0):
    return base ** (-2 * pair / dims)


def as_f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def pe(width, position, column, base=10000.0):
    angle = position * frequency_of(width, column // 2, base)
    return math.cos(angle) if column % 2 else math.sin(angle)


def dot(width, distance, base=10000.0):
    return sum(math.cos(distance * frequency_of(width, i, base)) for i in range(width // 2))


def softmax(scores):
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def slope(heads, head):
    power = 2 ** int(math.log2(heads))
    return 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (2 * (head - power) + 1) / power)


def t5_bucket(distance, bidirectional, buckets=32, furthest=128):
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    share = math.log(distance / exact) / math.log(furthest / exact) * (buckets - exact)
    return first + min(buckets - 1, exact + math.floor(share + 1e-9))


def deberta_row(distance, buckets, furthest):
    """distance is key minus query; DeBERTa's own is query minus key."""
    relative, middle = -distance, buckets // 2
    bucket = relative
    if abs(relative) > middle:
        steps = math.log(abs(relative) / middle) / math.log((furthest - 1) / middle) * (middle - 1)
        bucket = math.copysign(middle + math.ceil(steps - 1e-9), relative)
    return int(min(max(bucket + buckets, 0), 2 * buckets - 1))


class Oracle:
    def __init__(self, schemes):
        self.schemes = schemes

    def scaled(self, name):
        """(frequencies, magnitude, softmax factor) of a rotation."""
        scheme, length = self.schemes[name]["scheme"], self.schemes[name].get("length", 0)
        dims, base = scheme["dims"], scheme.get("base", 10000)
        plain = [frequency_of(dims, i, base) for i in range(dims // 2)]
        scaling = scheme.get("scaling", {"type": "none"})
        kind, factor = scaling["type"], scaling.get("factor", 1)
        if kind in ("none", "xpos"):
            return plain, 1, 1
        if kind == "linear":
            return [w / factor for w in plain], 1, 1
        if kind in ("ntk", "alpha", "dynamic"):
            factor = scaling.get("alpha", factor)
            if kind == "dynamic":
                original = scaling["original_length"]
                factor = factor * max(length, original) / original - (factor - 1)
            base *= factor ** (dims / (dims - 2))
            return [frequency_of(dims, i, base) for i in range(dims // 2)], 1, 1
        if kind == "ntk-fixed":
            return [frequency_of(dims, i, base * factor) * factor ** (-2 / dims) for i in range(dims // 2)], 1, 1
        if kind == "llama3":
            result = []
            for w in plain:
                kept = min(1, max(0, (8192 * w / (2 * PI) - 1) / 3))
                result.append(kept * w + (1 - kept) * w / factor)
            return result, 1, 1
        if kind == "yarn":
            ends = [dims * math.log(scaling["original_length"] / (2 * PI * turns)) / (2 * math.log(base))
                    for turns in (32, 1)]
            low, high = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), dims - 1)
            ramp = [min(1, max(0, (i - low) / (high - low))) for i in range(dims // 2)]
            g = lambda m: 0.1 * m * math.log(factor) + 1
            both = "mscale" in scaling
            magnitude = g(scaling["mscale"]) / g(scaling["mscale_all_dim"]) if both else g(1)
            return ([w / factor * r + w * (1 - r) for w, r in zip(plain, ramp)], magnitude,
                    g(scaling["mscale_all_dim"]) ** 2 if both else 1)
        if kind == "longrope":
            original = scaling["original_length"]
            divisors = scaling["long_factors" if length > original else "short_factors"]
            return ([w / divisor for w, divisor in zip(plain, divisors)],
                    math.sqrt(1 + math.log(factor) / math.log(original)), 1)
        if kind == "proportional":
            turning = int(scaling["proportion"] * dims / 2)
            return [w if i < turning else 0 for i, w in enumerate(plain)], 1, 1
        raise KeyError(kind)

    def bias(self, name, head, query, key):
        scheme, distance = self.schemes[name]["scheme"], abs(query - key)
        if scheme["scheme"] == "alibi":
            return -slope(scheme["heads"], head) * distance
        if scheme["scheme"] == "kerple":
            a, r = scheme["amplitudes"][head], scheme["rates"][head]
            return -a * distance**r if scheme.get("kernel") == "power" else -a * math.log(1 + r * distance)
        if scheme["scheme"] == "sandwich":
            return scheme["heads"] / (8 * (head + 1)) * dot(scheme["dims"], distance)
        if scheme["scheme"] == "fire":
            psi = lambda x: math.log(0.1 * x + 1)
            x = psi(distance) / (psi(max(query, 512)) + 1e-6)
            return scheme["output_weights"][0] * max(0, scheme["hidden_weights"][0] * x)
        raise KeyError(scheme["scheme"])

    def reversal_gap(self, name, causal):
        sentence = [[0.9, 0.1, 0.4, 0.2], [0.2, 0.8, 0.1, 0.5], [0.6, 0.3, 0.9, 0.7]]
        scheme = self.schemes[name]["scheme"]["scheme"]

        def turned(x, position):
            y = list(x)
            for i in range(2):  # halves: features i and i + 2
                c, s = math.cos(position * frequency_of(4, i)), math.sin(position * frequency_of(4, i))
                y[i], y[i + 2] = x[i] * c - x[i + 2] * s, x[i + 2] * c + x[i] * s
            return y

        def attended(tokens):
            if scheme == "sinusoidal":
                tokens = [[x + pe(4, p, j) for j, x in enumerate(row)] for p, row in enumerate(tokens)]
            queries = [turned(row, p) for p, row in enumerate(tokens)] if scheme == "rope" else tokens
            result = []
            for m, q in enumerate(queries):
                keys = range(m + 1 if causal else 3)
                scores = [sum(a * b for a, b in zip(q, queries[n])) / 2 for n in keys]
                if scheme == "alibi":
                    scores = [score - slope(1, 0) * abs(m - n) for n, score in zip(keys, scores)]
                weights = softmax(scores)
                result.append([sum(w * tokens[n][j] for n, w in zip(keys, weights)) for j in range(4)])
            return result

        one, other = attended(sentence[::-1]), attended(sentence)[::-1]
        return max(abs(a - b) for row, mirrored in zip(one, other) for a, b in zip(row, mirrored))

    def float32_error(self, name, position):
        dims, worst = self.schemes[name]["scheme"]["dims"], 0
        for i in range(dims // 2):
            rounded = as_f32(as_f32(position) * as_f32(frequency_of(dims, i)))
            exact = position * frequency_of(dims, i)
            worst = max(worst, abs(math.sin(rounded) - math.sin(exact)), abs(math.cos(rounded) - math.cos(exact)))
        return worst

    def rotate(self, dims, pair, position, a, b):
        angle = position * frequency_of(dims, pair)
        return a * math.cos(angle) - b * math.sin(angle), b * math.cos(angle) + a * math.sin(angle)

    def functions(self):
        def frequency(first, pair, base=10000.0):
            return self.scaled(first)[0][pair] if isinstance(first, str) else frequency_of(first, pair, base)

        def slowdown(name, pair):
            scheme = self.schemes[name]["scheme"]
            return frequency_of(scheme["dims"], pair, scheme.get("base", 10000)) / self.scaled(name)[0][pair]

        def fade(name, pair, distance):
            dims = self.schemes[name]["scheme"]["dims"]
            return ((2 * pair + 0.4 * dims) / (1.4 * dims)) ** (distance / 512)

        def bucket(name, distance):
            scheme = self.schemes[name]["scheme"]
            if scheme["scheme"] == "t5":
                return t5_bucket(distance, scheme.get("bidirectional", True))
            return deberta_row(distance, scheme["buckets"], scheme["max_distance"])

        def value(name, position, column):
            assert self.schemes[name]["scheme"]["scheme"] == "steps" or name == "shift"
            # the random start of `shift` cancels in the differences that content shows
            return position * (0.0001 if name == "steps" else 0.02)

        def as_bf16(x):
            bits = struct.unpack("<I", struct.pack("<f", x))[0]
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
            return struct.unpack("<f", struct.pack("<I", bits))[0]

        return {
            "pi": PI, "sqrt": math.sqrt, "ln": math.log, "exp": math.exp, "pow": math.pow, "floor": math.floor,
            "pe": pe, "dot": dot, "slope": slope,
            "frequency": frequency, "slowdown": slowdown, "fade": fade, "bucket": bucket, "value": value,
            "as_bf16": as_bf16, "bias": self.bias, "reversal_gap": self.reversal_gap,
            "float32_error": self.float32_error,
            "wavelength": lambda *arguments: 2 * PI / frequency(*arguments),
            "magnitude": lambda name: self.scaled(name)[1], "softmax_factor": lambda name: self.scaled(name)[2],
            "rotate_a": lambda *arguments: self.rotate(*arguments)[0],
            "rotate_b": lambda *arguments: self.rotate(*arguments)[1],
            "weight": lambda which, *scores: softmax(scores)[which],
        }

    def parts(self, template):
        """(text before, value or None, form) of every piece of a template."""
        pieces, end = [], 0
        for match in re.finditer(r"\{\{(.*?)(?:\|([^}|]*))?\}\}", template):
            value = eval(match[1], {"__builtins__": {}}, self.functions())  # the repository's own content
            pieces.append((template[end:match.start()], value, (match[2] or "").strip()))
            end = match.end()
        return pieces + [(template[end:], None, "")]
