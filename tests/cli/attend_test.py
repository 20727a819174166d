"""posenc attend: attention with position, from file to file."""

import json
import math
import unittest

from program import ProgramTest, npy, parse_npy


def values(*shape, seed=1):
    """Small distinct numbers."""
    size = math.prod(shape)
    return [math.sin(0.7 * (i + 1) * seed) for i in range(size)]


def attend(q, k, v, heads, tokens, features, bias=lambda h, m, n: 0.0, causal=True, scale=None, window=None, softcap=None,
           sinks=None):
    """(out, weights) of [heads, tokens, features], by the formula."""
    scale = 1 / math.sqrt(features) if scale is None else scale
    cap = (lambda x: softcap * math.tanh(x / softcap)) if softcap else (lambda x: x)
    out, weights = [], []
    for h in range(heads):
        at = lambda x, t: x[(h * tokens + t) * features : (h * tokens + t + 1) * features]
        for m in range(tokens):
            seen = range(max(0, m + 1 - window) if window else 0, m + 1) if causal else range(tokens)
            scores = [cap(scale * sum(a * b for a, b in zip(at(q, m), at(k, n)))) + bias(h, m, n) for n in seen]
            powers = [math.exp(score) for score in scores]
            total = sum(powers) + (math.exp(sinks[h]) if sinks else 0)
            row = [power / total for power in powers]
            weights += row + [0.0] * (tokens - len(row))
            out += [sum(w * at(v, n)[f] for w, n in zip(row, seen)) for f in range(features)]
    return out, weights


class Attend(ProgramTest):
    HEADS, TOKENS, FEATURES = 2, 5, 4

    def setUp(self):
        super().setUp()
        shape = (self.HEADS, self.TOKENS, self.FEATURES)
        self.inputs = [values(*shape, seed=seed) for seed in (1, 2, 3)]
        for name, data in zip("qkv", self.inputs):
            self.write(f"{name}.npy", npy("f32", shape, data))

    def names(self):
        return [word for name in "qkv" for word in (f"--{name}", self.path(f"{name}.npy"))]

    def run_attend(self, scheme, *more):
        self.succeeds("attend", scheme, *self.names(), "-o", self.path("out.npy"), "--force", "--quiet", *more)
        return parse_npy(self.read("out.npy"))

    def expect(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertAlmostEqual(a, b, places=5)

    def test_without_position(self):
        dtype, shape, out = self.run_attend("none", "--causal")
        self.assertEqual((dtype, shape), ("f32", (2, 5, 4)))
        self.expect(out, attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES)[0])
        out = self.run_attend("none", "--scale", 0.25)[2]
        self.expect(out, attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES, causal=False, scale=0.25)[0])

    def test_alibi_follows_the_heads_of_q_and_shows_its_weights(self):
        slopes = [2**-4, 2**-8]
        bias = lambda h, m, n: -slopes[h] * abs(m - n)
        out = self.run_attend("alibi", "--causal", "--weights", self.path("weights.npy"))[2]
        expected, weights = attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES, bias)
        self.expect(out, expected)
        dtype, shape, found = parse_npy(self.read("weights.npy"))
        self.assertEqual((dtype, shape), ("f32", (2, 5, 5)))
        self.expect(found, weights)

    def test_t5_takes_its_table(self):
        table = values(32, 2)
        self.write("table.npy", npy("f32", (32, 2), table))
        out = self.run_attend("t5", "--causal", "--scale", 1, "--bidirectional", "false", "--table",
                              self.path("table.npy"))[2]
        bias = lambda h, m, n: table[2 * (m - n) + h]
        self.expect(out, attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES, bias, scale=1)[0])

    def test_shaw_takes_its_vectors(self):
        vectors = values(3, 4)
        self.write("vectors.npy", npy("f32", (3, 4), vectors))
        out = self.run_attend("shaw", "--left", 1, "--right", 1, "--vectors", self.path("vectors.npy"))[2]
        q = self.inputs[0]

        def bias(h, m, n):
            row = max(-1, min(1, n - m)) + 1
            at = (h * self.TOKENS + m) * 4
            return sum(q[at + f] * vectors[row * 4 + f] for f in range(4)) / 2

        self.expect(out, attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES, bias, causal=False)[0])

    def test_shaw_adds_to_values(self):
        vectors, added = values(3, 4), values(3, 4, seed=5)
        self.write("vectors.npy", npy("f32", (3, 4), vectors))
        self.write("added.npy", npy("f32", (3, 4), added))
        files = ("--vectors", self.path("vectors.npy"), "--value-vectors", self.path("added.npy"))
        fields = ("--left", 1, "--right", 1, "--beyond", "none")
        plain = self.run_attend("shaw", *fields, *files[:2])[2]
        out = self.run_attend("shaw", *fields, "--with-values", "true", *files, "--weights", self.path("weights.npy"))[2]
        weights = parse_npy(self.read("weights.npy"))[2]
        expected = list(plain)
        for row in range(self.HEADS * self.TOKENS):
            for n in range(self.TOKENS):
                apart = n - row % self.TOKENS
                for f in range(4 if abs(apart) <= 1 else 0):
                    expected[row * 4 + f] += weights[row * self.TOKENS + n] * added[(apart + 1) * 4 + f]
        self.expect(out, expected)
        self.refused("attend", "shaw", *fields, "--with-values", "true", *self.names(), *files[:2], "-o",
                     self.path("new.npy"), says="shaw: the trained vectors for values [3, features] are missing (--value-vectors FILE.npy)")

    def test_missing_vectors_are_named_by_their_flag(self):
        out = ("-o", self.path("new.npy"))
        self.write("two.npy", npy("f32", (8, 4), values(8, 4)))
        two = ("--max-distance", 4, "--buckets", 0)
        for scheme, fields, says in (
            ("shaw", ("--left", 1, "--right", 1), "shaw: the trained vectors [3, features] are missing (--vectors FILE.npy)"),
            ("cope", ("--rows", 8), "cope: the trained vectors [8, features] are missing (--vectors FILE.npy)"),
            ("relative-logits", ("--extent", 5), "the trained vectors [5, features] are missing (--vectors FILE.npy)"),
            ("deberta", two, "deberta: the trained vectors [8, features] are missing (--vectors FILE.npy)"),
            ("deberta", (*two, "--vectors", self.path("two.npy")), "vectors for keys [8, features] are missing (--key-vectors"),
        ):
            self.refused("attend", scheme, *fields, *self.names(), *out, says=says)
        # a term that is off needs no table
        self.run_attend("deberta", *two, "--content-to-position", "false", "--key-vectors", self.path("two.npy"))
        self.run_attend("deberta", *two, "--position-to-content", "false", "--vectors", self.path("two.npy"))

    def test_relative_logits_take_their_own_queries(self):
        table, own = values(3, 2), values(self.HEADS, self.TOKENS, 2, seed=5)
        self.write("table.npy", npy("f32", (3, 2), table))
        self.write("own.npy", npy("f32", (self.HEADS, self.TOKENS, 2), own))
        fields = ("--extent", 3, "--vectors", self.path("table.npy"))
        out = self.run_attend("relative-logits", *fields, "--position-queries", self.path("own.npy"), "--causal")[2]

        def bias(h, m, n):
            at = (h * self.TOKENS + m) * 2
            return sum(own[at + f] * table[(m - n) * 2 + f] for f in range(2)) if m - n < 3 else 0.0

        self.expect(out, attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES, bias)[0])
        self.refused("attend", "relative-logits", *fields, *self.names(), "-o", self.path("new.npy"),
                     says="relative-logits: the queries of its vectors are missing (--position-queries FILE.npy)")

    def test_forget_gates_are_summed_between_key_and_query(self):
        gates = [-abs(x) for x in values(self.HEADS, self.TOKENS, seed=6)]
        self.write("gates.npy", npy("f32", (self.HEADS, self.TOKENS), gates))
        out = self.run_attend("forget-gate", "--log-gates", self.path("gates.npy"), "--causal")[2]

        def bias(h, m, n):
            return sum(gates[h * self.TOKENS + t] for t in range(n + 1, m + 1))

        self.expect(out, attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES, bias)[0])
        self.refused("attend", "forget-gate", *self.names(), "-o", self.path("new.npy"),
                     says="forget-gate: the logarithms of its gates are missing (--log-gates FILE.npy)")
        self.refused("attend", "alibi", *self.names(), "--log-gates", self.path("gates.npy"), "-o", self.path("new.npy"),
                     says="log_gates are given, but the form does not use them")

    def test_cope_counts_keys_by_their_gates(self):
        table = values(3, self.FEATURES, seed=7)
        self.write("table.npy", npy("f32", (3, self.FEATURES), table))
        out = self.run_attend("cope", "--rows", 3, "--vectors", self.path("table.npy"), "--causal")[2]
        q, k, _ = self.inputs

        def row(x, h, t):
            at = (h * self.TOKENS + t) * self.FEATURES
            return x[at:at + self.FEATURES]

        def dot(a, b):
            return sum(x * y for x, y in zip(a, b))

        def bias(h, m, n):
            query = row(q, h, m)
            counts = (1 / (1 + math.exp(-dot(query, row(k, h, t)) / math.sqrt(self.FEATURES))) for t in range(n, m + 1))
            p = min(sum(counts), 2.0)
            met = [dot(query, table[r * self.FEATURES:(r + 1) * self.FEATURES]) for r in range(3)]
            return met[math.floor(p)] * (1 - p + math.floor(p)) + met[math.ceil(p)] * (p - math.floor(p))

        self.expect(out, attend(*self.inputs, self.HEADS, self.TOKENS, self.FEATURES, bias)[0])

    def rotated(self, x):
        y = list(x)
        for token in range(self.HEADS * self.TOKENS):
            for i in range(2):
                angle = (token % self.TOKENS) * 10000.0 ** (-i / 2)
                a, b = x[token * 4 + i], x[token * 4 + i + 2]
                y[token * 4 + i] = a * math.cos(angle) - b * math.sin(angle)
                y[token * 4 + i + 2] = b * math.cos(angle) + a * math.sin(angle)
        return y

    def run_model(self, config, *more):
        self.write("config.json", json.dumps(config).encode())
        out = ("-o", self.path("out.npy"), "--force", "--quiet")
        self.succeeds("attend", "--model", self.path("config.json"), *self.names(), *out, *more)
        return parse_npy(self.read("out.npy"))[2]

    def test_a_model_brings_all_that_its_layers_do(self):
        sizes = {"hidden_size": 8, "head_dim": 4, "num_attention_heads": 2, "num_hidden_layers": 2, "rope_theta": 10000.0}
        q, k, v = self.inputs
        q, k = self.rotated(q), self.rotated(k)
        gemma = sizes | {"model_type": "gemma2", "sliding_window": 3, "attn_logit_softcapping": 0.6, "query_pre_attn_scalar": 9}
        for layer, window in (("0", 3), ("1", None)):
            expected = attend(q, k, v, self.HEADS, self.TOKENS, self.FEATURES, scale=1 / 3, softcap=0.6, window=window)[0]
            self.expect(self.run_model(gemma, "--layer-type", layer), expected)
        # inspect shows the same
        document = json.loads(self.succeeds("inspect", self.path("config.json"), "--json").out)
        self.assertEqual([(group["window"], group["softcap"], group["causal"]) for group in document["layers"]],
                         [(3, 0.6, True), (None, 0.6, True)])
        self.assertAlmostEqual(document["layers"][0]["scale"], 1 / 3)
        text = self.succeeds("inspect", self.path("config.json")).text
        for words in ("window       3 keys", "softcap      scores become 0.6 tanh(score / 0.6)", "scale        0.333333", "mask         causal"):
            self.assertIn(words, text)

        sinks = [0.5, -1.0]
        self.write("sinks.npy", npy("f32", (2,), sinks))
        oss = sizes | {"model_type": "gpt_oss", "layer_types": ["full_attention"] * 2,
                       "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
        expected = attend(q, k, v, self.HEADS, self.TOKENS, self.FEATURES, sinks=sinks)[0]
        self.expect(self.run_model(oss, "--sinks", self.path("sinks.npy")), expected)
        self.refused("attend", "--model", self.path("config.json"), *self.names(), "-o", self.path("new.npy"),
                     says="it has sinks, whose trained logits [heads] are missing")
        self.write("none.npy", npy("f32", (0,), []))
        self.refused("attend", "--model", self.path("config.json"), *self.names(), "--sinks", self.path("none.npy"), "-o",
                     self.path("new.npy"), says="none.npy: shape [0] has no numbers")

    def test_attention_that_is_not_computed_is_refused(self):
        self.write("config.json", json.dumps({"model_type": "diffllama", "hidden_size": 8, "num_attention_heads": 2,
                                              "num_hidden_layers": 1}).encode())
        says = "its attention is not computed: the weights are the difference of two softmaxes"
        self.refused("attend", "--model", self.path("config.json"), *self.names(), "-o", self.path("new.npy"), says=says)
        self.assertIn("not computed: the weights are the difference", self.succeeds("inspect", self.path("config.json")).text)

    def test_rope_rotates_q_and_k(self):
        q, k, v = self.inputs
        expected = attend(self.rotated(q), self.rotated(k), v, self.HEADS, self.TOKENS, self.FEATURES)[0]
        self.expect(self.run_attend("rope", "--causal")[2], expected)
        # only differences of positions matter
        self.expect(self.run_attend("rope", "--causal", "--q-positions", "100:105", "--k-positions", "100:105")[2],
                    expected)

    def test_rotated_q_and_k_are_rounded_where_asked(self):
        """The same bytes as apply and then attend without position; without the flag, others."""
        shape = (2, 40, 8)
        for name, seed in zip("qkv", (1, 2, 3)):
            self.write(f"{name}.npy", npy("f16", shape, [3 * x for x in values(*shape, seed=seed)]))
        rounded = self.run_attend("rope", "--causal", "--round-rotated")
        whole = self.run_attend("rope", "--causal")
        for name in "qk":
            self.succeeds("apply", "rope", self.path(f"{name}.npy"), "-o", self.path(f"{name}.npy"), "--axes", "hsd",
                          "--force", "--quiet")
        before = self.run_attend("none", "--causal")
        self.assertEqual(rounded, before)
        self.assertNotEqual(whole, before)
        out = ("-o", self.path("other.npy"), "--round-rotated")
        self.refused("attend", "alibi", *self.names(), *out, says="--round-rotated: alibi does not rotate q and k")
        self.write("q.npy", npy("f32", shape, values(*shape)))
        self.refused("attend", "rope", *self.names(), *out, says="q.npy contains f32; --round-rotated needs f16 or bf16")

    def test_positions_by_list_and_of_several_axes(self):
        given = lambda text: ("--causal", "--q-positions", text, "--k-positions", text)
        expected = self.run_attend("rope", *given("0:5"))[2]
        self.expect(self.run_attend("rope", *given("0,1,2,3,4"))[2], expected)
        times, rows = [0, 1, 1, 1, 7], [0, 1, 2, 5, 9]
        self.write("times.npy", npy("i64", (5,), times))
        self.write("ids.npy", npy("i64", (2, 5), times + rows))
        q, k, v = self.inputs

        def by(axes, x):
            y = list(x)
            for token in range(self.HEADS * self.TOKENS):
                for i in range(2):
                    angle = axes[i][token % self.TOKENS] * 10000.0 ** (-i / 2)
                    a, b = x[token * 4 + i], x[token * 4 + i + 2]
                    y[token * 4 + i] = a * math.cos(angle) - b * math.sin(angle)
                    y[token * 4 + i + 2] = b * math.cos(angle) + a * math.sin(angle)
            return y

        for more, axes in ((("rope", *given("@" + self.path("times.npy"))), (times, times)),
                           (("rope", "--sections", "1,1", *given("@" + self.path("ids.npy"))), (times, rows)),
                           (("rope", "--sections", "1,1", *given("0:5")), (range(5), range(5)))):
            self.expect(self.run_attend(*more)[2],
                        attend(by(axes, q), by(axes, k), v, self.HEADS, self.TOKENS, self.FEATURES)[0])
        self.refused("attend", "rope", "--sections", "1,1", *self.names(), "-o", self.path("new.npy"),
                     says="--q-positions: the scheme needs positions with 2 axes, as @ids.npy of shape [2, 5], or 0:5 for text")

    def test_axes_with_heads_after_the_sequence(self):
        expected = self.run_attend("alibi", "--causal")[2]
        for name, data in zip("qkv", self.inputs):
            swapped = [data[(h * 5 + t) * 4 + f] for t in range(5) for h in range(2) for f in range(4)]
            self.write(f"{name}.npy", npy("f32", (1, 5, 2, 4), swapped))
        dtype, shape, out = self.run_attend("alibi", "--causal", "--axes", "bshd")
        self.assertEqual(shape, (1, 5, 2, 4))
        self.expect([out[(t * 2 + h) * 4 + f] for h in range(2) for t in range(5) for f in range(4)], expected)

    def test_backends_agree(self):
        expected = self.run_attend("alibi", "--causal", "--backend", "reference")[2]
        self.expect(self.run_attend("alibi", "--causal", "--backend", "cpu", "--threads", 2)[2], expected)

    def test_refusals(self):
        names = self.names()
        out = self.path("no.npy")
        self.refused("attend", "none", *names, says="attend: the output is missing")
        self.refused("attend", "none", *names[2:], "-o", out, says="attend: --q FILE.npy is missing")
        self.refused("attend", *names, "-o", out, says="attend: the scheme is missing")
        self.refused("attend", "alibbi", *names, "-o", out, says="alibi")
        self.refused("attend", "sinusoidal", *names, "-o", out, says="an addition belongs to the embeddings")
        self.refused("attend", "none", *names, "-o", out, "--axes", "hdx", says="--axes: 'hdx' is not one of")
        self.refused("attend", "none", *names, "-o", out, "--window", "-1", says="window must be 0 or more")
        self.refused("attend", "none", *names, "-o", out, "--weights", out, says="--weights: needs a different file than -o")
        self.refused("attend", "alibi", "--heads", 3, *names, "-o", out, says="has heads 2, but --heads says 3")
        self.refused("attend", "none", *names, "-o", out, "--q-positions", "0:4", says="4 positions for 5 tokens")
        short = self.write("short.npy", npy("f32", (2, 4, 4), values(2, 4, 4)))
        self.refused("attend", "none", *names[:4], "--v", short, "-o", out, says="v has 4 tokens but k has 5")


if __name__ == "__main__":
    unittest.main()
