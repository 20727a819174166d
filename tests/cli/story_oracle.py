"""The worked examples once more, from formula and data, in plain Python: shares nothing with the library.

expected(story, content) gives (matrices, facts, said): every matrix by name as rows of floats (None: no such cell),
every fact by name, and the other numbers that prose may hold.
"""

import itertools
import math
import re
from decimal import Decimal, getcontext

getcontext().prec = 70
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
MASK = (1 << 64) - 1


def wave(position, pair, width, function):
    """sin or cos of position · 10000^(−2·pair/width), the angle reduced with 70 digits."""
    angle = Decimal(position) * Decimal(10000) ** (Decimal(-2 * pair) / Decimal(width))
    turns = (angle / (2 * PI)).to_integral_value()
    return function(float(angle - turns * 2 * PI))


def row(position, width):
    return [wave(position, pair, width, function) for pair in range(width // 2) for function in (math.sin, math.cos)]


def table(positions, width):
    return [row(position, width) for position in positions]


def frequencies(width):
    return [10000.0 ** (-2 * pair / width) for pair in range(width // 2)]


def add(a, b):
    return [[x + y for x, y in zip(r, s)] for r, s in zip(a, b)]


def times(a, b):
    return [[math.fsum(x * b[i][j] for i, x in enumerate(r)) for j in range(len(b[0]))] for r in a]


def transposed(a):
    return [list(column) for column in zip(*a)]


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def scaled(a, factor):
    return [[x * factor for x in r] for r in a]


def softmax(scores, causal=False):
    rows = []
    for i, line in enumerate(scores):
        powers = [math.exp(x) if not causal or j <= i else 0.0 for j, x in enumerate(line)]
        rows.append([power / math.fsum(powers) for power in powers])
    return rows


def distance(a, b):
    return math.sqrt(math.fsum((x - y) ** 2 for x, y in zip(a, b)))


def apart(a, b):
    return max(abs(x - y) for r, s in zip(a, b) for x, y in zip(r, s))


def noise(seed, count):
    """SplitMix64 as numbers in [−1, 1)."""
    values, state = [], seed & MASK
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        mixed = state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        values.append(((mixed ^ (mixed >> 31)) >> 11) / 2.0**52 - 1.0)
    return values


def word_row(word, width):
    state = 0xCBF29CE484222325
    for byte in word.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    values = noise(state >> 1, width)
    length = math.sqrt(math.fsum(x * x for x in values))
    return [x / length for x in values]


def cat_sat(content):
    x, width = content["x"], content["width"]
    p = table(range(3), width)
    cat = content["words"].index(content["moved"])
    elsewhere = [[a + b for a, b in zip(x[cat], line)] for line in p]
    steps = [[content["step"] * position] * width for position in range(3)]
    start = noise(content["shift_seed"], width)
    shifted = [[s + content["shift"] * position for s in start] for position in range(3)]
    mean = math.fsum(abs(v) for line in x for v in line) / 12

    def largest(m):
        return max(abs(v) for line in m for v in line)

    def uneven(m):
        return max(abs((m[2][j] - m[1][j]) - (m[1][j] - m[0][j])) for j in range(width))

    facts = [("‖cat@0 − cat@1‖", distance(*elsewhere[0:2])), ("‖cat@0 − cat@2‖", distance(elsewhere[0], elsewhere[2])),
             ("largest signal / mean size of X", largest(steps) / mean), ("the same for sinusoids", largest(p) / mean),
             ("steps between neighbours differ by, at most", uneven(shifted)), ("the same for sinusoids", uneven(p))]
    return {"X": x, "P": p, "X'": add(x, p), "E": elsewhere, "B": steps, "C": shifted}, facts, [
        *frequencies(width), content["step"], largest(steps) / mean, width, 1, 0]


def dog_bites_man(content, text=None):
    words = text.split() if text else content["words"]
    width = content["text_width"] if text else content["width"]
    x1 = [word_row(word, width) for word in words] if text else content["x"]
    x2 = x1[::-1]
    p = table(range(len(words)), width)
    m, outputs = {"X1": x1, "X2": x2, "P": p, "X1'": add(x1, p), "X2'": add(x2, p)}, {}
    for name in ("X1", "X2", "X1'", "X2'"):
        rest, x = name[1:], m[name]
        m["S" + rest] = times(x, transposed(x))
        m["A" + rest] = softmax(scaled(m["S" + rest], 1 / math.sqrt(width)))
        m["O" + rest] = times(m["A" + rest], x)
        if "'" not in name:
            m["A" + rest + "m"] = softmax(scaled(m["S" + rest], 1 / math.sqrt(width)), causal=True)
            m["O" + rest + "m"] = times(m["A" + rest + "m"], x)
    for kind in ("", "m", "'"):
        outputs[kind] = apart(m["O2" + kind], m["O1" + kind][::-1])
    moved = apart(m["O2"], m["O1"])
    m["R"] = [[outputs[kind]] for kind in ("", "m", "'")]
    name = "largest |Att(P·X) − P·Att(X)|"
    facts = [(name, outputs[""]), ("largest |Att(P·X) − Att(X)|", moved), (name, outputs["m"]), (name, outputs["'"])]
    return m, facts, [moved, 18, 0]


def frank_and_alex(content):
    x, width = content["x"], 6
    w = {"Q": content["w_q"], "K": content["w_k"], "V": content["w_v"]}
    p = table(range(1, 5), width)
    m = {"X": x, "P": p, "X'": add(x, p), "W_Q": w["Q"], "W_K": w["K"], "W_V": w["V"]}
    for mark in ("", "'"):
        for letter in "QKV":
            m[letter + mark] = times(m["X" + mark], w[letter])
        m["S" + mark] = scaled(times(m["Q" + mark], transposed(m["K" + mark])), 1 / math.sqrt(2))
        m["A" + mark] = softmax(m["S" + mark])
        m["O" + mark] = times(m["A" + mark], m["V" + mark])
    m["D"] = [[distance(m[letter + mark][0], m[letter + mark][3]) for mark in ("", "'")] for letter in "XQKVSAO"]
    far = content["far"]
    m["F"] = table(far, width)
    up_to = content["unique_up_to"]
    seats = table(range(1, up_to + 1), width)
    closest, one, other = min(((distance(seats[a], seats[b]), a + 1, b + 1)
                               for a, b in itertools.combinations(range(up_to), 2)), key=lambda entry: entry[0])
    both = [r + s for r, s in zip(x, p)]
    stacked = max(apart(times(both, w[letter] + w[letter]), m[letter + "'"]) for letter in "QKV")
    facts = [("‖Frank − Alex‖ in X", m["D"][0][0]), ("‖Frank − Alex‖ in O", m["D"][6][0]),
             ("‖Frank − Alex‖ in X'", m["D"][0][1]), (f"unique among seats 1 to {up_to}", closest > 0),
             (f"closest two, {other - one} seats apart", closest), ("seat 4 the same in every sequence", True),
             (f"defined and within [-1, 1] at seat {far[-1]}", True), ("width of a row, added", width),
             ("width of a row, concatenated", 2 * width), ("numbers in W_Q, W_K, W_V, added", 42),
             ("numbers in W_Q, W_K, W_V, concatenated", 84), ("largest |[X P]·[W; W] − X'·W|", stacked)]
    return m, facts, [*frequencies(width), 1, 2, 4, 6, 0]


def shift(content):
    words = [word.strip(".") for word in content["sentence"].split()]
    k, width = words.index(content["to"]) - words.index(content["from"]), content["width"]

    def matrix(places):
        rows = [[0.0] * width for _ in range(width)]
        for pair, rate in enumerate(frequencies(width)):
            c, s, at = math.cos(rate * places), math.sin(rate * places), 2 * pair
            rows[at][at : at + 2] = [c, s]
            rows[at + 1][at : at + 2] = [-s, c]
        return rows

    positions = content["positions"]
    m = {"W": [[rate, 2 * math.pi / rate] for rate in frequencies(width)], "M": matrix(k),
         "P": table(positions, width), "P+": table([p + k for p in positions], width)}
    m["MP"] = times(m["P"], transposed(m["M"]))
    m["T"] = [[value for rate in frequencies(width) for value in (math.cos(rate * k), math.sin(rate * k))]
              for _ in positions]
    first, second = content["parts"]
    m["M0"], m["M1"], m["M10"] = matrix(first), matrix(second), matrix(first + second)
    facts = [("distance from cat to sat", k), ("largest |M·P(p) − P(p+k)|, these positions", 0.0),
             (f"the same for every position below {content['every_position_below']}", 0.0),
             ("largest difference within a column", 0.0), (f"largest |M1 · M0 − matrix of {first + second}|", 0.0)]
    return m, facts, [k, 2 * math.pi, first, second, first + second, 2, 0]


def dot_product(content):
    width, length, far = content["width"], content["length"], content["far"]
    p, m, n = table(range(length), width), content["m"], content["n"]
    sums = [math.fsum(math.cos(rate * delta) for rate in frequencies(width)) for delta in range(length)]
    matrices = {"P": table([m, n], width), "T": [], "L": [], "G": [],
                "D": [[dot(p[i], p[i + delta]) if i + delta < length else None for i in range(length - 1)]
                      for delta in range(1, length, 2)]}
    for pair, rate in enumerate(frequencies(width)):
        s, c = (wave(m, pair, width, f) * wave(n, pair, width, f) for f in (math.sin, math.cos))
        matrices["T"].append([s, c, s + c, math.cos(rate * (m - n))])
    far_rows = table(range(far, far + length), width)
    for delta in range(length):
        line = [dot(p[i], p[i + delta]) for i in range(length - delta)]
        matrices["L"].append([min(line), max(line), sums[delta]])
        matrices["G"].append([dot(p[0], p[delta]), dot(far_rows[0], far_rows[delta])])
    best = max(range(2, length), key=sums.__getitem__)
    facts = [("product of the rows", dot(*matrices["P"])), ("sum of cosines", sums[m - n]), ("difference", 0.0),
             ("largest spread at one distance", 0.0), ("largest difference from the sum", 0.0),
             ("largest difference from the sum", 0.0),
             ("falls with every step of distance", sums == sorted(sums, reverse=True)),
             (f"distance {best}", sums[best]), ("distance 1", sums[1])]
    return matrices, facts, [m, n, width, far, best, 1]


def learned_or_sinusoidal(content):
    rows, width, rate, x = content["rows"], content["width"], content["rate"], content["x"]
    flat = [content["noise"] * value for value in noise(content["seed"], rows * width)]
    before = [flat[i * width : (i + 1) * width] for i in range(rows)]
    gradient = [[0.0] * width for _ in range(rows)]
    for i, line in enumerate(x):
        gradient[i] = [a + e - t for a, e, t in zip(line, before[i], content["target"][i])]
    after = [[e - rate * g for e, g in zip(*lines)] for lines in zip(before, gradient)]

    def neighbours(t):
        products = [dot(a, b) for a, b in zip(t, t[1:])]
        return [min(products), max(products)]

    learned, sinusoidal = neighbours(after), neighbours(table(range(rows), width))
    shown = content["shown_rows"]
    m = {"E": [before[i] for i in shown], "X": x, "T": content["target"], "G": [gradient[i] for i in shown],
         "E'": [after[i] for i in shown], "P": table(content["far"], width), "N": [learned, sinusoidal]}
    error = f"tabulate: position {rows} is past the table: {rows} rows with offset 0 end at position {rows - 1}"
    facts = [("rate", rate), ("rows that moved", len(x)), ("rows in all", rows), ("error", error),
             ("learned", rows * content["model_width"]), ("sinusoidal", 0),
             ("spread, learned", learned[1] - learned[0]), ("spread, sinusoidal", 0.0)]
    return m, facts, [rows, rows - 1, rows + 1, len(x) - 1, content["far"][-1], content["model_width"], 0]


def rope(content):
    (q,), (k,), dims = content["q"], content["k"], content["dims"]
    starts, offset = content["starts"], content["offset"]

    def turned(x, position):
        result = []
        for pair in range(dims // 2):
            a, b = x[2 * pair : 2 * pair + 2]
            c, s = (wave(position, pair, dims, f) for f in (math.cos, math.sin))
            result += [a * c - b * s, a * s + b * c]
        return result

    def closed(delta):
        total = 0.0
        for pair, rate in enumerate(frequencies(dims)):
            one, other = complex(*q[2 * pair : 2 * pair + 2]), complex(*k[2 * pair : 2 * pair + 2])
            angle = rate * delta
            total += (one * complex(math.cos(angle), math.sin(angle)) * other.conjugate()).real
        return total

    queries = [start + offset for start in starts]
    m = {"q": [q], "k": [k], "Fq": [[p * rate for rate in frequencies(dims)] for p in queries],
         "Fk": [[p * rate for rate in frequencies(dims)] for p in starts],
         "Rq": [turned(q, p) for p in queries], "Rk": [turned(k, p) for p in starts],
         "L": [[dot(turned(q, n + delta), turned(k, n)) for n in starts] for delta in content["offsets"]],
         "C": [[closed(delta)] for delta in content["offsets"]]}
    m["S"] = times(m["Rq"], transposed(m["Rk"]))
    facts = [("q · k", dot(q, k)), ("largest change of length", 0.0), ("spread down the diagonal", 0.0),
             ("largest spread within a line", 0.0), ("largest difference from the line above", 0.0)]
    return m, facts, [offset, math.sqrt(dot(q, q)), 0]


STORIES = {"dog-bites-man": dog_bites_man, "cat-sat": cat_sat, "frank-and-alex": frank_and_alex, "shift": shift,
           "dot-product": dot_product, "learned-or-sinusoidal": learned_or_sinusoidal, "rope": rope}


def rounded(value, digits):
    text = f"{value:.{digits}f}"
    return text[1:] if re.fullmatch(r"-0\.?0*", text) else text
