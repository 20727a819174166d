"""The worked examples once more, from formula and data, in plain Python: shares nothing with the library.

expected(story, content) gives (matrices, facts, said): every matrix by name as rows of floats (None: no such cell),
every fact by name, and the other numbers that prose may hold.
"""

import functools
import itertools
import json
import math
import pathlib
import re
from decimal import Decimal, getcontext

getcontext().prec = 70
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
MASK = (1 << 64) - 1


@functools.cache
def frequency(pair, width, base):
    return Decimal(base) ** (Decimal(-2 * pair) / Decimal(width))


def wave(position, pair, width, function, base=10000):
    """sin or cos of position · base^(−2·pair/width), the angle reduced with 70 digits."""
    angle = Decimal(position) * frequency(pair, width, base)
    turns = (angle / (2 * PI)).to_integral_value()
    return function(float(angle - turns * 2 * PI))


def row(position, width, base=10000):
    return [wave(position, pair, width, function, base)
            for pair in range(width // 2) for function in (math.sin, math.cos)]


def table(positions, width, base=10000):
    return [row(position, width, base) for position in positions]


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


def cat_sat(content, start=None):
    x, width = content["x"], content["width"]
    p = table(range(3), width)
    cat = content["words"].index(content["moved"])
    elsewhere = [[a + b for a, b in zip(x[cat], line)] for line in p]
    steps = [[content["step"] * position] * width for position in range(3)]
    start = start or content["shift_start"]
    shifted = [[s + content["shift"] * position for s in start] for position in range(3)]
    mean = math.fsum(abs(v) for line in x for v in line) / 12

    def largest(m):
        return max(abs(v) for line in m for v in line)

    def uneven(m):
        return max(abs((m[2][j] - m[1][j]) - (m[1][j] - m[0][j])) for j in range(width))

    far, counter = content["far"], content["counter"]
    facts = [("largest |B| / mean |X|", largest(steps) / mean), (f"the same with steps of 1, at position {far}", far / mean),
             ("largest |P| / mean |X|", largest(p) / mean), ("differences between adjacent rows of C vary by", uneven(shifted)),
             ("differences between adjacent rows of P vary by", uneven(p)),
             *((f"digits of position {n}, the last one first", f"{n:0{width}b}"[::-1]) for n in counter),
             *((f"digits that change from {a} to {b}", bin(a ^ b).count("1")) for a, b in zip(counter, counter[1:])),
             ("‖cat@0 − cat@1‖", distance(*elsewhere[0:2])), ("‖cat@0 − cat@2‖", distance(elsewhere[0], elsewhere[2]))]
    return {"X": x, "P": p, "X'": add(x, p), "E": elsewhere, "B": steps, "C": shifted}, facts, [
        *frequencies(width), content["step"], largest(steps) / mean, width, 1, 0]


def dog_bites_man(content, text=None, other=None):
    words = text.split() if text else content["words"]
    width = content["text_width"] if text else content["width"]
    x1 = [word_row(word, width) for word in words] if text else content["x"]
    order = permutation(words, other.split()) if other else list(range(len(words)))[::-1]
    x2 = [x1[i] for i in order]
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
        outputs[kind] = apart(m["O2" + kind], [m["O1" + kind][i] for i in order])
    moved = apart(m["O2"], m["O1"])
    m["R"] = [[outputs[kind]] for kind in ("", "m", "'")]
    name = "largest |Att(Π·X) − Π·Att(X)|"
    facts = [(name, outputs[""]), ("largest |Att(Π·X) − Att(X)|", moved), (name, outputs["m"]), (name, outputs["'"])]
    return m, facts, [moved, 18, 0]


def permutation(words, other):
    """Which word of the first sentence each word of the second is."""
    left, order = list(range(len(words))), []
    for word in other:
        at = next(i for i in left if words[i] == word)
        left.remove(at)
        order.append(at)
    return order


def frank_and_alex(content, base=10000.0, width=6, concatenated=False):
    x = [line[:width] for line in content["x"]]
    w = {letter: content["w_" + letter.lower()][:width] for letter in "QKV"}
    p = table(range(1, 5), width, base)
    m = {"X": x, "P": p, "X'": add(x, p), "W_Q": w["Q"], "W_K": w["K"], "W_V": w["V"]}
    if concatenated:
        m["X'"] = [r + s for r, s in zip(x, p)]
        m.update({f"W_{letter}'": w[letter] + w[letter] for letter in "QKV"})
    for mark in ("", "'"):
        for letter in "QKV":
            m[letter + mark] = times(m["X" + mark], m["W_" + letter + (mark if concatenated else "")])
        m["S" + mark] = scaled(times(m["Q" + mark], transposed(m["K" + mark])), 1 / math.sqrt(2))
        m["A" + mark] = softmax(m["S" + mark])
        m["O" + mark] = times(m["A" + mark], m["V" + mark])
    m["D"] = [[distance(m[letter + mark][0], m[letter + mark][3]) for mark in ("", "'")] for letter in "XQKVSAO"]
    for letter in "QKV":
        m["P" + letter] = times(p, w[letter])
    rest = [1, 2, 3]  # everybody but Frank, without position
    m["A-"] = softmax([[m["S"][i][j] for j in rest] for i in rest])
    m["O-"] = times(m["A-"], [m["V"][i] for i in rest])
    far = content["far"]
    m["F"] = table(far, width, base)
    up_to = content["unique_up_to"]
    seats = table(range(1, up_to + 1), width, base)
    closest, one, other = min(((distance(seats[a], seats[b]), a + 1, b + 1)
                               for a, b in itertools.combinations(range(up_to), 2)), key=lambda entry: entry[0])
    both = [r + s for r, s in zip(x, p)]
    stacked = max(apart(times(both, w[letter] + w[letter]), times(add(x, p), w[letter])) for letter in "QKV")
    profiles = [(f"seat {seat}, {name}", ", ".join(word for word, value in zip(content["features"], line) if value > 0.5))
                for seat, (name, line) in enumerate(zip(content["names"], x), 1)]
    facts = [*profiles, ("‖Frank − Alex‖ in X", m["D"][0][0]), ("‖Frank − Alex‖ in O", m["D"][6][0]),
             ("‖Frank − Alex‖ in X'", m["D"][0][1]), ("mean |P|", mean_magnitude(p)), ("mean |X|", mean_magnitude(x)),
             (f"unique among seats 1 to {up_to}", closest > 0),
             (f"smallest distance, between rows {other - one} seats apart", closest),
             ("seat 4 has the same row in every sequence", True),
             (f"defined and within [-1, 1] at seat {far[-1]}", True), ("width of a row, added", width),
             ("width of a row, concatenated", 2 * width), ("parameters of W_Q, W_K, W_V, added", 7 * width),
             ("parameters of W_Q, W_K, W_V, concatenated", 14 * width), ("largest |[X P]·[W; W] − (X + P)·W|", stacked)]
    daniel = [p[2][i] * w["Q"][i][1] for i in (1, 5) if i < width]
    return m, facts, [*(base ** (-2 * i / width) for i in range(width // 2)), *daniel, 1, 2, 4, 6, 0]


def mean_magnitude(m):
    return math.fsum(abs(v) for line in m for v in line) / sum(len(line) for line in m)


def shift(content, start=None):
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
    start, step = start or content["affine_start"], content["affine_step"]
    ramp = [[s + step * position for s in start] for position in content["affine_positions"]]
    mean = math.fsum(start) / len(start)
    u = [(s - mean) / math.fsum((t - mean) ** 2 for t in start) for s in start]
    m["B"], m["N"] = ramp, [[(1.0 if i == j else 0.0) + step * u[j] for j in range(len(u))] for i in range(len(u))]
    m["NB"] = [[v + step for v in line] for line in ramp]
    norms = [math.sqrt(dot(line, line)) for line in ramp]
    facts = [("distance from cat to sat", k), ("largest |M·P(p) − P(p+k)|, these positions", 0.0),
             (f"the same for every position below {content['every_position_below']}", 0.0),
             ("largest difference within a column", 0.0), (f"largest |M1 · M0 − matrix of {first + second}|", 0.0),
             ("largest |N·B(p) − B(p+1)|", 0.0), ("norm of the first row", norms[0]), ("norm of the last row", max(norms))]
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
    step, slope = max(abs(b - a) for a, b in zip(sums, sums[1:])), math.fsum(frequencies(width))
    facts = [("dot product of the rows", dot(*matrices["P"])), ("sum of cosines", sums[m - n]), ("difference", 0.0),
             ("largest spread at one distance", 0.0), ("largest difference from the sum", 0.0),
             ("largest difference from the sum", 0.0), ("largest change from one distance to the next", step),
             ("bound: Σ ω_i", slope), ("monotone: falls with every step", sums == sorted(sums, reverse=True)),
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
         "E'": [after[i] for i in shown], "P": table(content["far"], width), "N": [learned, sinusoidal],
         "V": [[4.92, 25.8], [4.92, 25.7]], "L": [[20.05], [43.54], [406.0]]}  # as published
    error = f"tabulate: position {rows} is past the table: {rows} rows with offset 0 end at position {rows - 1}"
    facts = [("rate", rate), ("rows that moved", len(x)), ("rows in all", rows), ("error", error),
             ("learned", rows * content["model_width"]), ("sinusoidal", 0),
             ("spread, learned", learned[1] - learned[0]), ("spread, sinusoidal", 0.0)]
    return m, facts, [rows, rows - 1, rows + 1, len(x) - 1, content["far"][-1], content["model_width"], 0]


def rope(content):
    (q,), (k,), dims = content["q"], content["k"], content["dims"]
    starts, offset = content["starts"], content["offset"]

    def rotated(x, position):
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
         "Rq": [rotated(q, p) for p in queries], "Rk": [rotated(k, p) for p in starts],
         "L": [[dot(rotated(q, n + delta), rotated(k, n)) for n in starts] for delta in content["offsets"]],
         "C": [[closed(delta)] for delta in content["offsets"]]}
    m["S"] = times(m["Rq"], transposed(m["Rk"]))
    facts = [("q · k", dot(q, k)), ("largest change of norm", 0.0), ("spread along the diagonal", 0.0),
             ("largest spread within a line", 0.0), ("largest difference from the scores above", 0.0)]
    return m, facts, [offset, math.sqrt(dot(q, q)), 0]


def attention(x, w_q, w_k, w_v, causal=False):
    """Q, K, V, S, A, O of one head."""
    q, k, v = times(x, w_q), times(x, w_k), times(x, w_v)
    s = scaled(times(q, transposed(k)), 1 / math.sqrt(len(w_q[0])))
    a = softmax(s, causal)
    return q, k, v, s, a, times(a, v)


def permutation_proof(content):
    x, order, n = content["x"], content["order"], len(content["x"])
    weights = [content[name] for name in ("w_q", "w_k", "w_v")]
    pi = [[1.0 if j == order[i] else 0.0 for j in range(n)] for i in range(n)]
    px = times(pi, x)
    m = {"X": x, "Π": pi, "ΠX": px, "W_Q": weights[0], "W_K": weights[1], "W_V": weights[2]}
    for mark, rows in (("", x), ("'", px)):
        m.update(zip((letter + mark for letter in "QKVSAO"), attention(rows, *weights)))
    p = m["P"] = table(range(n), len(x[0]))
    placed, moved = add(x, p), add(px, p)
    before, after = attention(placed, *weights)[5], attention(moved, *weights)[5]
    facts = [(f"largest |{letter}' − Π·{letter}|", 0.0) for letter in "QKV"]
    facts += [("largest |S' − Π·S·Πᵀ|", 0.0), ("largest |A' − Π·A·Πᵀ|", 0.0), ("largest |Π·Πᵀ − I|", 0.0),
              ("largest |Att(Π·X) − Π·Att(X)|", 0.0),
              ("largest |(Π·X + P) − Π·(X + P)|", apart(moved, [placed[i] for i in order])),
              ("largest |Att(Π·X + P) − Π·Att(X + P)|", apart(after, [before[i] for i in order]))]
    return m, facts, [0, 1]


def look_back(content):
    width, k, length, far, beta = (content[key] for key in ("width", "k", "length", "far", "sharpness"))
    w_q = [[float(beta) if i == j else 0.0 for j in range(width)] for i in range(width)]
    w_k = [[0.0] * width for _ in range(width)]
    for pair, rate in enumerate(frequencies(width)):
        c, s, at = math.cos(rate * k), math.sin(rate * k), 2 * pair
        w_k[at][at : at + 2], w_k[at + 1][at : at + 2] = [c, -s], [s, c]
    m = {"W_Q": w_q, "W_K": w_k}
    for mark, start in (("", 0), ("+", far)):
        m["P" + mark] = table(range(start, start + length), width)
        m["Q" + mark] = scaled(m["P" + mark], beta)
        m["K" + mark] = table(range(start + k, start + k + length), width)
        # the score by the closed form, not by the vectors
        m["S" + mark] = [[beta * math.fsum(math.cos(rate * (p - n - k)) for rate in frequencies(width))
                          for n in range(length)] for p in range(length)]
        m["A" + mark] = softmax(m["S" + mark], causal=True)
    peaks = [max(range(p + 1), key=m["A"][p].__getitem__) == p - k for p in range(k, length)]
    facts = [(f"largest weight at n = p − {k}, for every p from {k}", all(peaks)),
             ("smallest of these weights", min(m["A"][p][p - k] for p in range(k, length))),
             ("largest difference of the weights", 0.0)]
    return m, facts, [k, beta, far, far + length - 1, 0]


def nope(content):
    order, root = content["order"], math.sqrt(len(content["x"][0]))

    def layer(x, causal):
        s = scaled(times(x, transposed(x)), 1 / root)
        a = softmax(s, causal)
        return s, a, times(a, x)

    m = {"X1": content["x"], "X2": [content["x"][i] for i in order]}
    gaps = []
    for causal in (True, False):
        last = []
        for one in "12":
            first = layer(m["X" + one], causal)
            second = layer(first[2], causal)
            if causal:
                m.update(zip((letter + one for letter in "SAOTBU"), first + second))
            last.append((first[2][-1], second[2][-1]))
        gaps.append([distance(last[0][i], last[1][i]) for i in (0, 1)])
    m["R"] = gaps
    word = content["words"][-1]
    facts = [(f'‖O1 − O2‖ of "{word}"', 0.0), (f'‖U1 − U2‖ of "{word}"', gaps[0][1]), ("after one layer", 0.0),
             ("after two layers", 0.0)]
    return m, facts, [1, 2]


def alibi(content):
    heads, length, far, other = content["heads"], content["length"], content["far"], content["other_heads"]
    slopes = [2.0 ** (-8 * (h + 1) / heads) for h in range(heads)]
    power = 2 ** int(math.log2(other))
    others = [2.0 ** (-8 * (h + 1) / power) if h < power else 2.0 ** (-8 * (2 * (h - power) + 1) / (2 * power))
              for h in range(other)]
    shown = content["shown_heads"]
    m = {"H": [[s, math.log(2) / s] for s in slopes],
         "B": [[-slopes[shown[0]] * (q - k) if k <= q else None for k in range(length)] for q in range(length)],
         "A": softmax([[-slopes[h] * (length - 1 - k) for k in range(length)] for h in shown]),
         "N": [[s, 2.0 ** (-8 * (h + 1) / other)] for h, s in enumerate(others)]}
    facts = [("weight of each key without a bias", 1 / length),
             (f"difference of the bias at distance 3, at position 3 and at {far}", 0.0)]
    return m, facts, [heads, far, -slopes[shown[-1]] * far, other, power, 2 * power, *shown, 0, 8, 2]


def t5_buckets(content):
    buckets, most = content["buckets"], content["max_distance"]

    def bucket(r, count):
        exact = count // 2
        return r if r < exact else min(count - 1, exact + int(math.log(r / exact) / math.log(most / exact) * (count - exact)))

    half = buckets // 2
    m = {"D": [[float(bucket(r, buckets))] for r in content["distances"]],
         "E": [[float(bucket(r, half)), float(bucket(r, half) + (half if r else 0))] for r in content["distances"]]}
    last = next(r for r in range(10000) if bucket(r, buckets) == buckets - 1)
    facts = [("parameters per head", buckets), ("first distance in the decoder's last bucket", last)]
    encoders = next(r for r in range(10000) if bucket(r, half) == half - 1)
    return m, facts, [buckets, half, half // 2, buckets - 1, last, encoders]


def context_extension(content):
    dims, base, trained, factor = (content[key] for key in ("dims", "base", "trained", "factor"))
    rates = [base ** (-2 * i / dims) for i in range(dims // 2)]
    last = factor * trained - 1
    ntk = base * factor ** (dims / (dims - 2))

    def dimension(turns):  # Peng et al., eq. 17
        return dims * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(dimension(32)), 0), min(math.ceil(dimension(1)), dims - 1)

    def yarn(i):
        ramp = min(max((i - low) / (high - low), 0), 1)
        return rates[i] / factor * ramp + rates[i] * (1 - ramp)

    def llama3(i):
        wave = 2 * math.pi / rates[i]
        if wave < trained / 4:
            return rates[i]
        if wave > trained:
            return rates[i] / factor
        smooth = (trained / wave - 1) / (4 - 1)
        return (1 - smooth) * rates[i] / factor + smooth * rates[i]

    ways = [lambda i: rates[i] / factor, lambda i: ntk ** (-2 * i / dims), yarn, llama3]
    pairs = content["pairs"]
    magnitudes = [1.0, 1.0, 0.1 * math.log(factor) + 1, 1.0]
    m = {"W": [[2 * math.pi / rates[i], (trained - 1) * rates[i], last * rates[i]] for i in pairs],
         "D": [[rates[i] / way(i) for way in ways] for i in pairs],
         "E": [[last * way(i) / ((trained - 1) * rates[i]) for way in ways] for i in pairs],
         "F": [[way(0)] for way in ways], "G": [[g, g * g] for g in magnitudes]}
    facts = [("pairs", dims // 2),
             ("pairs with a wavelength above the trained length", sum(2 * math.pi / rate > trained for rate in rates))]
    return m, facts, [dims, trained, factor, last, 0, 1, 3]


def rotated_by(x, position, rates):
    """Pairs as complex numbers times e^(i·angle)."""
    result = []
    for pair, rate in enumerate(rates):
        z = complex(*x[2 * pair : 2 * pair + 2]) * complex(math.cos(rate * position), math.sin(rate * position))
        result += [z.real, z.imag]
    return result


def kv_cache(content):
    (q,), keys, dims, evicted = content["q"], content["k"], content["dims"], content["evicted"]
    rates = frequencies(dims)
    larger = [content["new_base"] ** (-2 * i / dims) for i in range(dims // 2)]
    cache = [rotated_by(k, n, rates) for n, k in enumerate(keys)]
    queries = [rotated_by(q, p, rates) for p in content["queries"]]
    scores = times(queries, transposed(cache))
    renumbered = times([rotated_by(q, p - evicted, rates) for p in content["queries"]], transposed(cache))
    new_queries = [rotated_by(q, p, larger) for p in content["queries"]]
    stale = times(new_queries, transposed(cache))
    fresh = times(new_queries, transposed([rotated_by(k, n, larger) for n, k in enumerate(keys)]))
    m = {"k": keys, "K": cache, "q": [q], "Q": queries, "S": scores, "C": scores,
         "K-": [rotated_by(k, n - evicted, rates) for n, k in enumerate(keys)]}
    size = math.prod(content[f"cache_{name}"] for name in ("keys", "heads", "features", "layers"))
    facts = [("largest |S − C|", 0.0), ("largest difference from recomputed keys", 0.0),
             ("largest error of a score", apart(renumbered, scores)), ("values read and written", size),
             ("largest error with stale keys", apart(stale, fresh))]
    return m, facts, [evicted, 10000, content["new_base"], 0]


def why_inside_attention(content):
    x, width, delta, starts = content["x"], content["width"], content["distance"], content["starts"]
    w_q, w_k, rates = content["w_q"], content["w_k"], frequencies(content["width"])
    xq, xk = times(x, w_q), times(x, w_k)
    pm, pn = table([n + delta for n in starts], width), table(starts, width)
    mq, nk = times(pm, w_q), times(pn, w_k)
    four = [[dot(xq[0], xk[1]), dot(xq[0], nk[i]), dot(mq[i], xk[1]), dot(mq[i], nk[i])] for i in range(len(starts))]
    rq = [rotated_by(xq[0], n + delta, rates) for n in starts]
    rk = [rotated_by(xk[1], n, rates) for n in starts]
    m = {"X": x, "W_Q": w_q, "W_K": w_k, "XQ": xq, "XK": xk, "Pm": pm, "Pn": pn, "PQ": mq, "PK": nk,
         "T": [[*terms, math.fsum(terms)] for terms in four], "Rq": rq, "Rk": rk,
         "R": [[dot(a, b)] for a, b in zip(rq, rk)],
         "B": [[four[0][0] - content["slope"] * delta] for _ in starts]}

    def spread(values):
        return max(values) - min(values)

    facts = [("largest variation of an input feature over the text, added", max(spread(column) for column in zip(*pm))),
             ("the same for rotation and bias", 0.0), ("spread of the score, added", spread([line[-1] for line in m["T"]])),
             ("spread of the score, rotated", 0.0), ("spread of the score, bias", 0.0)]
    return m, facts, [delta, 0]


def who_extrapolates(content):
    trained, heads, longest = content["trained"], content["heads"], content["trained"] * content["times"]
    published, own = dict(zip(content["published_rows"], content["published"])), dict(zip(content["lab_rows"], content["lab"]))
    at = content["published_columns"].index("3512")
    # the numbers of the lab are those of the run that the explorer shows, which the program wrote
    with open(pathlib.Path(__file__).parents[2] / "explorer" / "src" / "data" / "desk.json", encoding="utf-8") as file:
        desk = json.load(file)
    for result in desk["results"]:
        sizes = [one["size"] for one in result["by_size"]]
        if result["task"] == "text" and result["extension"] == "none" and sizes[0] == trained:
            assert [rounded(one["mean"], 2) for one in result["by_size"]] == [rounded(x, 2) for x in own[result["scheme"]]], result
            assert result["seeds"] == content["seeds"] and sizes == [int(size) for size in content["lab_columns"]]
    (slid,) = (one for one in desk["verdicts"] if one["id"] == "alibi-sliding-window")
    assert rounded(slid["mean"], 3) == rounded(content["window_lab_nats"], 3), slid
    growth = {name: (published[name][at] / published[name][0] if name in published else None, row[-1] / row[0])
              for name, row in own.items()}
    slopes = [2.0 ** (-8 * (h + 1) / heads) for h in range(heads)]

    def geometric(slope, first, last):  # Σ e^(−slope·d)
        return (math.exp(-slope * first) - math.exp(-slope * last)) / (1 - math.exp(-slope))

    m = {"P": content["published"], "M": content["lab"], "G": [list(row) for row in growth.values()],
         "A": [[geometric(s, trained, longest) / geometric(s, 0, longest)] for s in slopes],
         "W": [[content["window_published"][1] / content["window_published"][0]], [math.exp(content["window_lab_nats"])]]}
    dims = content["head_width"]
    turns = [10000.0 ** (-2 * i / dims) * (trained - 1) / (2 * math.pi) for i in range(dims // 2)]
    # T5's last bucket begins below the trained length, so that every one is used there
    exact = content["buckets"] // 2
    last = exact + math.log((trained - 1) / exact) / math.log(trained / exact) * (content["buckets"] - exact)
    assert int(last) == content["buckets"] - 1
    facts = [("grows most, published", max(published, key=lambda name: growth[name][0])),
             ("grows most, here", max(growth, key=lambda name: growth[name][1])),
             ("learned: rows that were never trained", longest - trained),
             (f"RoPE: pairs, of {dims // 2}, that did not complete a turn", sum(turn < 1 for turn in turns)),
             ("T5: buckets that were never used", 0)]
    return m, facts, [trained, longest, content["times"], content["seeds"], 3512 / 512, 3072]


STORIES = {"dog-bites-man": dog_bites_man, "permutation-proof": permutation_proof, "nope": nope, "cat-sat": cat_sat,
           "frank-and-alex": frank_and_alex, "shift": shift, "look-back": look_back, "dot-product": dot_product,
           "learned-or-sinusoidal": learned_or_sinusoidal, "why-inside-attention": why_inside_attention, "rope": rope,
           "kv-cache": kv_cache, "context-extension": context_extension, "alibi": alibi, "t5-buckets": t5_buckets,
           "who-extrapolates": who_extrapolates}


def rounded(value, digits):
    text = f"{value:.{digits}f}"
    return text[1:] if re.fullmatch(r"-0\.?0*", text) else text
