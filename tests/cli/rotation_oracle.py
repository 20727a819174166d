"""The worked examples of rotations once more, as story_oracle.py does it: from formula and data, in plain Python."""

import itertools
import math
import struct

from story_oracle import distance, dot, frequencies, frequency, rotated_by, scaled, softmax, times, transposed, wave


def closed(q, k, angles):
    """The score of a query and a key whose pairs are `angles` apart."""
    return math.fsum((complex(*q[2 * i : 2 * i + 2]) * complex(*k[2 * i : 2 * i + 2]).conjugate() *
                      complex(math.cos(angle), math.sin(angle))).real for i, angle in enumerate(angles))


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def bfloat16(x):
    """x ≥ 1, rounded to 8 significant bits, ties to even: as round() does."""
    step = 2.0 ** max(0, math.floor(math.log2(x)) - 7)
    return round(x / step) * step


def float32_angles(content):
    dims, p, offset = content["dims"], content["position"], content["offset"]
    rates = {i: float(frequency(i, dims, 10000)) for i in range(dims // 2)}  # the nearest double

    def narrow(i, position):
        return float32(position * float32(rates[i]))

    angles, errors = [], []
    for i in content["pairs"]:
        exact, rounded = p * rates[i], p * float32(rates[i])
        angles.append([exact, narrow(i, p)])
        errors.append([rounded - exact, narrow(i, p) - rounded, (rounded - exact) + (narrow(i, p) - rounded)])
    pair, trained = content["pair"], content["trained"]
    m = {"A": angles, "E": errors, "B": [[bfloat16(n)] for n in content["small_positions"]],
         "R": [[math.cos(offset * rates[pair]), math.cos(narrow(pair, n + offset) - narrow(pair, n))] for n in content["starts"]]}
    worst, single = 0.0, 0.0
    for i in range(dims // 2):  # Hugging Face: 1 / base^(2i/d) in float32, then the product
        theirs = float32(p * float32(1 / float32(10000.0 ** (2 * i / dims))))
        for function in (math.sin, math.cos):
            true = wave(p, i, dims, function)
            worst, single = max(worst, abs(function(theirs) - true)), max(single, abs(float32(true) - true))
    right, wrong = wave(p, pair, dims, math.sin), math.sin(narrow(pair, p))
    facts = [("sine of the exact angle", right), ("sine of the float32 angle", wrong),
             ("largest error of these angles", max(abs(line[2]) for line in errors)),
             (f"different positions among 0 to {trained - 1}", len({0.0, *map(bfloat16, range(1, trained))})),
             ("largest error of a row, angles as in Hugging Face's float32 code", worst),
             ("largest error of a row, exact angles rounded once to float32", single)]
    return m, facts, [p, pair, dims, offset, right, wrong]


def patches(content):
    (q,), (k,), dims, base = content["q"], content["k"], content["dims"], content["base"]
    line = [base ** (-2 * i / dims) for i in range(dims // 2)]
    half = [base ** (-2 * i / (dims // 2)) for i in range(dims // 4)]
    places, (down, right) = list(zip(content["places"][::2], content["places"][1::2])), content["offset"]

    def axial(row, column):
        return [row * w for w in half] + [column * w for w in half]

    def mixed(row, column):
        t = 2 * math.pi * content["direction"]
        return [(column * math.cos(t) + row * math.sin(t)) * w for w in half] + \
               [(row * math.cos(t) - column * math.sin(t)) * w for w in half]

    def turned(x, angles):
        return [part for i, angle in enumerate(angles) for part in rotated_by(x[2 * i : 2 * i + 2], 1, [angle])]

    def by_offset(angles):
        return [[closed(q, k, angles(r, c)) for c in content["offsets"]] for r in content["offsets"]]

    def cross(t):
        return t[1][1] - t[1][0] - t[0][1] + t[0][0]

    m = {"N": [[r * content["columns"] + c for c in range(content["columns"])] for r in range(content["rows"])],
         "q": [q], "k": [k], "F": [[closed(q, k, line), closed(q, k, [width * w for w in line])] for width in content["widths"]],
         "Fk": [axial(*place) for place in places], "Fq": [axial(r + down, c + right) for r, c in places],
         "Rk": [turned(k, axial(*place)) for place in places],
         "Rq": [turned(q, axial(r + down, c + right)) for r, c in places],
         "S": [[closed(q, k, axial(down, right))] for _ in places], "T": by_offset(axial), "M": by_offset(mixed)}
    corners = "{0}[1, 1] − {0}[1, 0] − {0}[0, 1] + {0}[0, 0]"
    facts = [("spread of these scores", 0.0), (corners.format("T"), 0.0), (corners.format("M"), cross(m["M"]))]
    return m, facts, [content["rows"], content["columns"], content["columns"] - 1, content["widths"][-1], down, right, dims // 4, 0, 1]


def video(content):
    (q,), (k,), dims, first = content["q"], content["k"], content["dims"], content["words_before"]
    rows, columns = content["rows"] // content["merge"], content["columns"] // content["merge"]
    patches, frames, words_after = rows * columns, content["frames"], content["words_after"]
    rates, axis = frequencies(dims), [a for a, n in enumerate(content["sections"]) for _ in range(n)]
    places = [(i, i, i) for i in range(first)]
    places += [(first + f, first + r, first + c) for f in range(frames) for r in range(rows) for c in range(columns)]
    places += [(first + max(rows, columns) + i,) * 3 for i in range(words_after)]

    def angles(place):
        return [place[a] * rate for a, rate in zip(axis, rates)]

    m = {"P": [[i, *place] for i, place in enumerate(places)], "F": [angles(places[i]) for i in content["shown_tokens"]],
         "q": [q], "k": [k], "S": [[closed(q, k, angles((1, 0, 0)))] for _ in range(patches)],
         "G": [[first + n * patches, first + max(rows, columns), first + max(n, rows, columns)] for n in content["more_frames"]]}
    facts = [("tokens of the video", frames * patches), ("offset of the words around it, counted", frames * patches + 1),
             ("offset of a place to itself one frame later, counted", patches),
             ("largest |M-RoPE − RoPE| over the scores of words", 0.0), ("spread of these scores", 0.0)]
    most = content["more_frames"][-1]
    return m, facts, [first, words_after, frames, rows, columns, most, most * patches + 1, *content["sections"], 1]


def decay(content):
    dims, length = content["dims"], content["length"]
    rates = [[base ** (-2 * i / dims) for i in range(dims // 2)] for base in content["bases"]]

    def mean(of, d):
        return math.fsum(math.cos(rate * d) for rate in of) / len(of)

    def bound(d):
        sums = itertools.accumulate(complex(math.cos(rate * d), math.sin(rate * d)) for rate in rates[0])
        return math.fsum(map(abs, sums)) / sum(range(1, dims // 2 + 1))

    far, ahead = content["distances"], content["ahead"]
    m = {"O": [[math.cos(rates[0][i] * d) for i in content["pairs"]] for d in content["near"]],
         "M": [[mean(of, d) for of in rates] for d in far], "B": [[bound(d)] for d in far],
         "K": [[mean(rates[0], d), mean(rates[0], d - ahead), -mean(rates[0], d)] for d in content["around"]],
         "L": [[-d * 2.0 ** (-8 / content["alibi_heads"])] for d in far]}
    curves = [[mean(of, d) for d in range(length)] for of in rates]
    facts = [(f"distances below {length} at which it rises, base-{content['bases'][0]}",
              sum(b > a for a, b in itertools.pairwise(curves[0])))]
    facts += [(f"first distance below {content['level']:g}, base-{base}", next(d for d in range(length) if curve[d] < content["level"]))
              for base, curve in zip(content["bases"], curves)]
    return m, facts, [dims // 2, ahead, 0, 1, 6, 44, 710]


def nope_layers(content):
    (q,), (k,), x = content["q"], content["k"], content["x"]
    rates, root = frequencies(len(x[0])), math.sqrt(len(x[0]))

    def layer(qk, v):
        s = scaled(times(qk, transposed(qk)), 1 / root)
        a = softmax(s, causal=True)
        return s, a, times(a, v)

    m = {"q": [q], "k": [k], "X1": x, "X2": [x[i] for i in content["order"]],
         "D": [[closed(q, k, [rate * d for rate in rates]), dot(q, k)] for d in content["distances"]]}
    gaps = []
    for one in "12":
        rows = m["X" + one]
        m["R" + one] = [rotated_by(row, position, rates) for position, row in enumerate(rows)]
        m.update(zip((f"S{one}", f"A{one}", f"N{one}"), layer(rows, rows)))
        m.update(zip((f"S{one}'", f"A{one}'", f"O{one}"), layer(m["R" + one], rows)))
        m.update(zip((f"T{one}", f"B{one}", f"U{one}"), layer(m["O" + one], m["O" + one])))
    gaps = {name: distance(m[name + "1"][-1], m[name + "2"][-1]) for name in "OU"}
    score, m["W"] = content["score"], []
    for n in content["lengths"]:  # Llama 4: floor_scale 8192, attn_scale 0.1
        factor = 1 + 0.1 * math.log(n // 8192 + 1)
        m["W"].append([math.exp(s) / (math.exp(s) + n - 1) if s is not None else factor for s in (score, None, score * factor)])
    word = content["words"][-1]
    facts = [(f'‖N1 − N2‖ of "{word}"', 0.0), ("largest difference from attention with RoPE inside", 0.0),
             (f'‖O1 − O2‖ of "{word}"', gaps["O"]), (f'‖U1 − U2‖ of "{word}"', gaps["U"])]
    return m, facts, [score, 8192, 1]


STORIES = {"float32-angles": float32_angles, "patches": patches, "video": video, "decay": decay, "nope-layers": nope_layers}
