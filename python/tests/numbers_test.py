"""The numbers: those of the program, byte for byte, and those of formulas written out in float64."""

import math
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import posenc

PROGRAM = os.environ.get("POSENC", "posenc")
RNG = np.random.default_rng(7)
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def program(*arguments):
    # what is preloaded for the interpreter (a sanitizer's run-time) is inside the program already
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, env=environment)


def rotated(x, positions, base=1e4, layout="halves"):
    """RoPE in float64, written out."""
    x = x.astype(np.float64)
    pairs = x.shape[-1] // 2
    angle = np.asarray(positions, np.float64)[:, None] * base ** (-np.arange(pairs) / pairs)
    first, second = (x[..., :pairs], x[..., pairs:]) if layout == "halves" else (x[..., 0::2], x[..., 1::2])
    a, b = first * np.cos(angle) - second * np.sin(angle), second * np.cos(angle) + first * np.sin(angle)
    return np.concatenate([a, b], -1) if layout == "halves" else np.stack([a, b], -1).reshape(x.shape)


def attended(q, k, v, bias=0.0, causal=False, scale=None):
    q, k, v = (one.astype(np.float64) for one in (q, k, v))
    k, v = (np.repeat(one, q.shape[-3] // one.shape[-3], -3) for one in (k, v))
    scores = (1 / math.sqrt(q.shape[-1]) if scale is None else scale) * q @ np.swapaxes(k, -1, -2) + bias
    if causal:
        many, keys = scores.shape[-2:]
        scores = np.where(np.arange(keys) <= np.arange(many)[:, None] + keys - many, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@unittest.skipUnless(shutil.which(PROGRAM), "there is no program to compare with")
class AsTheProgram(unittest.TestCase):
    """Python and the program give the same bytes."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return Path(self.folder.name) / name

    def test_tables(self):
        for scheme in (posenc.Sinusoidal(width=10), posenc.Sinusoidal(width=12, spacing="inclusive", layout="sin-cos")):
            for name, kind in TYPES.items():
                program("table", "sinusoidal", "--width", scheme.width, "--spacing",
                        scheme.spacing, "--layout", scheme.layout, "--positions", "1000000:1000005", "--dtype", name, "-o",
                        self.path(f"{scheme.width}{name}.npy"))
                wanted = np.load(self.path(f"{scheme.width}{name}.npy"))
                made = posenc.tabulate(posenc.prepare(scheme), first=1000000, count=5, dtype=name)
                self.assertEqual((made.dtype, made.tobytes()), (np.dtype(kind), wanted.tobytes()))

    def test_rotations(self):
        for layout in ("halves", "interleaved", "interleaved-to-halves"):
            for name, kind in TYPES.items():
                x = RNG.standard_normal((2, 3, 5, 8)).astype(kind)
                np.save(self.path("x.npy"), x)
                program("apply", "rope", "--dims", 8, "--layout", layout, "--positions", "39000:39005", "--axes", "bhsd", self.path("x.npy"), "-o",
                        self.path("y.npy"), "--force")
                form = posenc.prepare(posenc.Rope(dims=8, layout=layout))
                wanted = np.load(self.path("y.npy"))
                self.assertEqual(posenc.rotate(x.copy(), form, first=39000).tobytes(), wanted.tobytes())
                strided = np.ascontiguousarray(x.transpose(0, 2, 1, 3))
                posenc.rotate(strided, form, first=39000, order="bshd")
                self.assertEqual(np.ascontiguousarray(strided.transpose(0, 2, 1, 3)).tobytes(), wanted.tobytes())
                every_second = np.zeros((2, 3, 5, 16), kind)[..., ::2]
                every_second[...] = x
                posenc.rotate(every_second, form, first=39000)
                self.assertEqual(every_second.tobytes(), wanted.tobytes())
                raw = memoryview(bytearray(x.tobytes())).cast("B")
                if kind != np.float16:  # Python's memoryview has no f16
                    view = raw.cast({"f32": "f", "f64": "d"}[name], shape=x.shape)
                    posenc.rotate(view, form, first=39000)
                    self.assertEqual(view.tobytes(), wanted.tobytes())

    def test_bf16_as_uint16(self):
        form = posenc.prepare(posenc.Sinusoidal(width=8))
        narrow = posenc.tabulate(form, count=4, dtype="bf16")
        wide = posenc.tabulate(form, count=4, dtype="f64")
        self.assertEqual(narrow.dtype, np.uint16)
        back = (narrow.astype(np.uint32) << 16).view(np.float32)
        self.assertLess(np.abs(back - wide).max(), 2.0 ** -8)
        x = np.zeros((4, 8), np.uint16)
        self.assertEqual(posenc.add(x, form, dtype="bf16").tobytes(), narrow.tobytes())


class AgainstFormulas(unittest.TestCase):
    def near(self, made, wanted, bound):
        self.assertEqual(np.shape(made), np.shape(wanted))
        self.assertLess(float(np.abs(np.asarray(made, np.float64) - wanted).max()), bound)

    def test_rotate(self):
        x = RNG.standard_normal((2, 4, 16)).astype(np.float32)
        for layout in ("halves", "interleaved"):
            form = posenc.prepare(posenc.Rope(dims=16, layout=layout))
            self.near(posenc.rotate(x.copy(), form, first=5), rotated(x, [5, 6, 7, 8], layout=layout), 2e-6)
            self.near(posenc.rotate(x.copy(), form, ids=[3, 1, 4, 1]), rotated(x, [3, 1, 4, 1], layout=layout), 2e-6)
            ids = np.array([3, 1, 4, 1], np.int32)
            self.near(posenc.rotate(x.copy(), form, ids=ids), rotated(x, ids, layout=layout), 2e-6)

    def test_out_and_queries_with_keys(self):
        q, k = RNG.standard_normal((2, 4, 8)).astype("f"), RNG.standard_normal((1, 4, 8)).astype("f")
        form = posenc.prepare(posenc.Rope(dims=8))
        new = np.empty_like(q)
        self.assertIs(posenc.rotate(q, form, out=new), new)
        self.near(new, rotated(q, range(4)), 2e-6)
        both = posenc.rotate((q.copy(), k.copy()), form)
        self.near(both[0], rotated(q, range(4)), 2e-6)
        self.near(both[1], rotated(k, range(4)), 2e-6)
        self.near(posenc.rotate_backward(both, form)[1], k, 2e-6)

    def test_rerotate(self):
        x = RNG.standard_normal((4, 8)).astype("f")
        before, after = posenc.prepare(posenc.Rope(dims=8)), posenc.prepare(posenc.Rope(dims=8, base=5e5))
        cached = posenc.rotate(x.copy(), before, first=9)
        self.near(posenc.rerotate(cached, before, after, first=9), rotated(x, range(9, 13), 5e5), 4e-6)

    def test_axes(self):
        """M-RoPE: the pairs of a section follow their own coordinate."""
        form = posenc.prepare(posenc.Rope(dims=8, sections=(1, 1, 2)))
        self.assertEqual(form.axes, 3)
        ids = np.array([[5, 6], [7, 8], [9, 3]])
        x = RNG.standard_normal((2, 8)).astype("f")
        wanted = np.zeros((2, 8))
        for pair, axis in enumerate((0, 1, 2, 2)):
            angle = ids[axis] * 1e4 ** (-pair / 4)
            a, b = x[:, pair], x[:, pair + 4]
            wanted[:, pair], wanted[:, pair + 4] = a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)
        self.near(posenc.rotate(x.copy(), form, ids=ids), wanted, 2e-6)
        cosines, _ = posenc.tabulate(form, ids=ids)
        self.near(cosines[:, 2], np.cos(ids[2] * 1e4 ** -0.5), 1e-7)

    def test_alibi_and_t5(self):
        slopes = 2.0 ** -np.arange(1, 9)
        distance = np.abs(np.arange(6)[:, None] - np.arange(6))
        made = posenc.bias(posenc.prepare(posenc.Alibi(heads=8)), 6, 6, dtype="f64")
        self.near(made, -slopes[:, None, None] * distance, 1e-12)
        table = RNG.standard_normal((32, 8)).astype("f")
        made = posenc.bias(posenc.prepare(posenc.T5(heads=8), weights=table), [3], [3, 4, 2])
        self.near(made[:, 0, 0], table[0], 1e-9)   # distance 0
        self.near(made[:, 0, 1], table[17], 1e-9)  # one ahead: the upper half
        self.near(made[:, 0, 2], table[1], 1e-9)

    def test_attention(self):
        q = RNG.standard_normal((2, 4, 6, 8)).astype("f")
        k, v = RNG.standard_normal((2, 2, 2, 6, 8)).astype("f")
        self.near(posenc.attention(q, k, v), attended(q, k, v), 2e-5)
        slopes = 2.0 ** (-2.0 * np.arange(1, 5))
        bias = -slopes[:, None, None] * np.abs(np.arange(6)[:, None] - np.arange(6))
        form = posenc.prepare(posenc.Alibi(heads=4))
        self.near(posenc.attention(q, k, v, form, causal=True), attended(q, k, v, bias, True), 2e-5)
        rope = posenc.prepare(posenc.Rope(dims=8))
        wanted = attended(rotated(q, range(6)), rotated(k, range(6)), v, causal=True, scale=0.3)
        self.near(posenc.attention(q, k, v, rope, causal=True, scale=0.3), wanted, 2e-5)
        bshd = [np.ascontiguousarray(one.transpose(0, 2, 1, 3)) for one in (q, k, v)]
        made = posenc.attention(*bshd, rope, causal=True, scale=0.3, order="bshd")
        self.near(made.transpose(0, 2, 1, 3), wanted, 2e-5)
        cached = posenc.rotate(k.copy(), rope)
        last = posenc.attention(q[:, :, 5:], cached, v, rope, causal=True, scale=0.3, keys_are_rotated=True)
        self.near(last, wanted[:, :, 5:], 2e-5)
        mask = np.array([[True] * 6, [False, False] + [True] * 4])
        part = posenc.attention(q[1:], k[1:, :, 2:], v[1:, :, 2:])
        self.near(posenc.attention(q, k, v, key_mask=mask)[1:], part.astype(np.float64), 1e-6)

    def test_some_heads_of_any_form(self):
        """Tensor parallelism: attention of some heads with a slice of the form is that of the whole, bit for bit."""
        q, k, v = (RNG.standard_normal((4, 9, 8), np.float32) for _ in range(3))
        forms = [posenc.prepare(one) for one in (posenc.Rope(dims=8), posenc.Alibi(heads=4), posenc.Fope(heads=4, dims=8))]
        forms += [posenc.prepare(posenc.Kerple(amplitudes=(1.0, 2.0, 3.0, 4.0), rates=(1.0,) * 4), length=9),
                  posenc.prepare(posenc.T5(heads=4), weights=RNG.standard_normal((32, 4), np.float32)),
                  posenc.prepare(posenc.Shaw(left=4, right=4), weights=RNG.standard_normal((4, 9, 8), np.float32))]
        for form in forms:
            whole = posenc.attention(q, k, v, form, causal=True)
            for first, count in ((0, 4), (1, 2), (3, 1)):
                mine = slice(first, first + count)
                some = posenc.attention(q[mine], k[mine], v[mine], form.slice_heads(first, count), causal=True)
                self.assertEqual(some.tobytes(), whole[mine].tobytes(), (form, first, count))
        part = posenc.prepare(posenc.T5(heads=2), weights=np.arange(64, dtype=np.float32).reshape(32, 2)).slice_heads(1, 1)
        self.assertEqual(posenc.bias(part, 1, 1, dtype="f32")[0, 0, 0], 1.0)  # the table that nobody else refers to is still there
        for first, count in ((3, 2), (0, 0), (-1, 1)):
            with self.assertRaisesRegex(posenc.Error, f"slice_heads: heads from {first}, {count} of them, of a form with 4 heads"):
                forms[1].slice_heads(first, count)

    def test_merge(self):
        """Keys in three places give what they give in one; in q's order of axes, and bf16 parts in f32."""
        q, k, v = RNG.standard_normal((3, 2, 9, 4, 8)).astype("f")  # bshd

        def part(first, last, **given):
            lse = posenc.new_logsumexp(q, "bshd")
            return posenc.attention(q, k[:, first:last], v[:, first:last], logsumexp=lse, order="bshd", **given), lse

        out, lse = part(0, 2)
        for first, last in ((2, 3), (3, 9)):
            self.assertIs(posenc.merge(out, lse, *part(first, last), order="bshd"), out)
        wanted = attended(*(one.transpose(0, 2, 1, 3) for one in (q, k, v))).transpose(0, 2, 1, 3)
        self.near(out, wanted, 2e-5)
        nothing = np.full_like(lse, -np.inf)
        before = out.tobytes()
        posenc.merge(out, lse, np.full_like(out, np.nan), nothing, order="bshd")
        self.assertEqual(out.tobytes(), before)
        narrow = (out.view(np.uint32) >> 16).astype(np.uint16)
        wide, wide_lse = np.full_like(out, np.nan), nothing.astype(np.float64)
        posenc.merge(wide, wide_lse, narrow, lse, order="bshd", dtype="bf16")
        self.assertEqual((wide.view(np.uint32) >> 16).tobytes(), narrow.astype(np.uint32).tobytes())
        with self.assertRaisesRegex(posenc.Error, r"other has shape \[2, 4, 3, 8\] but must have \[2, 4, 9, 8\]"):
            posenc.merge(out, lse, out[:, :3].copy(), lse.copy(), order="bshd")
        with self.assertRaisesRegex(posenc.Error, "out overlaps other"):
            posenc.merge(out, lse, out, lse.copy(), order="bshd")
        with self.assertRaisesRegex(posenc.Error, "logsumexp is missing"):
            posenc.merge(out, None, out.copy(), lse.copy(), order="bshd")

    def test_rotated_q_and_k_are_rounded_where_asked(self):
        """The same bytes as rotate and then attention; without the option, others. f16, and bf16 as uint16."""
        rope = posenc.prepare(posenc.Rope(dims=16))
        for dtype in ("f16", "bf16"):
            wide = 3 * RNG.standard_normal((3, 2, 48, 16)).astype("f")
            narrow = wide.astype(np.float16) if dtype == "f16" else (wide.view(np.uint32) >> 16).astype(np.uint16)
            q, k, v = (np.ascontiguousarray(one) for one in narrow)
            given = {} if dtype == "f16" else {"dtype": "bf16"}
            before = posenc.attention(posenc.rotate(q.copy(), rope, **given), posenc.rotate(k.copy(), rope, **given), v, causal=True, scale=1.0, **given)
            rounded = posenc.attention(q, k, v, rope, causal=True, scale=1.0, rounds_rotated=True, **given)
            self.assertEqual(rounded.tobytes(), before.tobytes())
            self.assertNotEqual(posenc.attention(q, k, v, rope, causal=True, scale=1.0, **given).tobytes(), before.tobytes())

    def test_what_layers_of_models_need(self):
        """softcap, sinks, masks and temperature, written out."""
        q, k, v = RNG.standard_normal((3, 2, 5, 4)).astype("f")
        scores = 0.5 * q.astype(np.float64) @ np.swapaxes(k, -1, -2).astype(np.float64)
        capped = np.exp(2 * np.tanh(scores / 2))
        self.near(posenc.attention(q, k, v, softcap=2.0), capped / capped.sum(-1, keepdims=True) @ v, 2e-5)
        sinks = np.array([0.5, -1.0], "f")
        weights = np.exp(scores)
        self.near(posenc.attention(q, k, v, sinks=sinks), weights / (weights.sum(-1, keepdims=True) + np.exp(sinks)[:, None, None]) @ v, 2e-5)
        pattern = np.tril(np.ones((5, 5), bool))
        self.near(posenc.attention(q, k, v, mask=pattern), posenc.attention(q, k, v, causal=True).astype(np.float64), 1e-6)
        byte = posenc.attention(q, k, v, mask=3 * pattern.astype(np.uint8))  # bytes are as good as bools
        self.assertEqual(byte.tobytes(), posenc.attention(q, k, v, mask=pattern).tobytes())
        image = np.array([0, 1, 1, 1, 0])
        both = pattern | (image[:, None] & image).astype(bool)
        self.near(posenc.attention(q, k, v, causal=True, spans=image), posenc.attention(q, k, v, mask=both).astype(np.float64), 1e-6)
        warm = np.exp(scores * (1 + 0.1 * np.log(1 + np.arange(5) // 2))[:, None])
        self.near(posenc.attention(q, k, v, temperature=(0.1, 2, 0)), warm / warm.sum(-1, keepdims=True) @ v, 2e-5)
        self.near(posenc.attention(q, k, v, temperature=(0.1, 2, 0, "steps")), warm / warm.sum(-1, keepdims=True) @ v, 2e-5)
        with self.assertRaises(ValueError):
            posenc.attention(q, k, v, temperature=(0.1, 2, 0, "warm"))

    def test_layers_whose_attention_is_another_function(self):
        sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2}
        with self.assertRaisesRegex(NotImplementedError, "layer 1: its attention is not computed: the weights are the difference"):
            posenc.read_model({"model_type": "diffllama"} | sizes).layer(1)
        divided = posenc.read_model({"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": True})
        self.assertAlmostEqual(divided.layer(3).scale, 1 / 8 / 4)

    def test_shift(self):
        x = RNG.standard_normal((3, 5, 8)).astype("f")
        form = posenc.prepare(posenc.Rope(dims=8, scaling=posenc.YarnScaling(factor=4)))
        cached = posenc.rotate(x.copy(), form, first=3)
        self.near(posenc.shift(cached, form, 40), posenc.rotate(x.astype(np.float64), form, first=43), 2e-6)

    def test_attention_backward(self):
        q, k, v, d = RNG.standard_normal((4, 1, 2, 3, 4))
        rope = posenc.prepare(posenc.Rope(dims=4, scaling=posenc.YarnScaling(factor=4)))
        lse = posenc.new_logsumexp(q)
        out = posenc.attention(q, k, v, rope, causal=True, logsumexp=lse)
        made = posenc.attention_backward(d, q, k, v, rope, causal=True, out=out, logsumexp=lse)
        for name in "qkv":
            inputs = {"q": q, "k": k, "v": v}
            step = np.zeros_like(q)
            step[0, 1, 1, 2] = 1e-6
            ahead, behind = ({**inputs, name: inputs[name] + sign * step} for sign in (1, -1))
            slope = sum(sign * (posenc.attention(one["q"], one["k"], one["v"], rope, causal=True) * d).sum()
                        for sign, one in ((1, ahead), (-1, behind))) / 2e-6
            self.assertAlmostEqual(getattr(made, name)[0, 1, 1, 2], slope, places=6)
        self.assertIsNone(posenc.attention_backward(d, q, k, v, wanted=("v",)).q)

    def slope(self, value, array, gradient):
        """Each element by a small step either way."""
        for at in np.ndindex(array.shape):
            start, ends = array[at], []
            for step in (1e-6, -1e-6):
                array[at] = start + step
                ends.append(value())
            array[at] = start
            self.assertAlmostEqual(gradient[at], (ends[0] - ends[1]) / 2e-6, places=6)

    def test_vectors_that_are_added_to_values(self):
        q, k, v, d = RNG.standard_normal((4, 1, 2, 3, 4))
        keys, values = RNG.standard_normal((2, 3, 4))  # distances -1, 0 and 1
        shaw = posenc.Shaw(left=1, right=1, with_values=True)
        form = posenc.prepare(shaw, weights=keys, value_weights=values)
        row = np.clip(np.arange(3) - np.arange(3)[:, None], -1, 1) + 1
        scores = np.exp((q @ np.swapaxes(k, -1, -2) + np.einsum("bhmf,mnf->bhmn", q, keys[row])) / 2)
        weights = scores / scores.sum(-1, keepdims=True)
        self.near(posenc.attention(q, k, v, form), weights @ v + np.einsum("bhmn,mnf->bhmf", weights, values[row]), 1e-12)
        d_keys, d_values = np.zeros_like(keys), np.zeros_like(values)
        posenc.attention_backward(d, q, k, v, form, d_query_vectors=d_keys, d_value_vectors=d_values)
        value = lambda: (posenc.attention(q, k, v, form) * d).sum()  # noqa: E731
        self.slope(value, keys, d_keys)
        self.slope(value, values, d_values)
        other = form.bind(keys, value_weights=0 * values)
        self.near(posenc.attention(q, k, v, other), weights @ v, 1e-12)
        with self.assertRaises(posenc.Error):
            posenc.prepare(posenc.Shaw(left=1, right=1), weights=keys, value_weights=values)

    def test_gates_of_the_tokens(self):
        q, k, v, d = RNG.standard_normal((4, 1, 2, 5, 4))
        gates = np.log(RNG.uniform(0.2, 1, (1, 2, 5)))
        form = posenc.prepare(posenc.ForgetGate())
        sums = gates.cumsum(-1)
        added = np.where(np.tri(5, dtype=bool), sums[..., :, None] - sums[..., None, :], -np.inf)
        self.near(posenc.attention(q, k, v, form, log_gates=gates, causal=True), attended(q, k, v, added), 1e-12)
        made = posenc.attention_backward(d, q, k, v, form, log_gates=gates, causal=True, wanted=("q", "log_gates"))
        value = lambda: (posenc.attention(q, k, v, form, log_gates=gates, causal=True) * d).sum()  # noqa: E731
        self.slope(value, q, made.q)
        self.slope(value, gates, made.log_gates)
        with self.assertRaises(posenc.Error):
            posenc.attention(q, k, v, form, causal=True)
        with self.assertRaisesRegex(ValueError, "'log_gates', but there are none"):
            posenc.attention_backward(d, q, k, v, wanted=("log_gates",))

    def test_queries_of_the_position(self):
        q, k, v, d = RNG.standard_normal((4, 1, 2, 3, 4))
        table, r = RNG.standard_normal((2, 5)), RNG.standard_normal((1, 2, 3, 5))  # distances 0 and 1
        form = posenc.prepare(posenc.RelativeLogits(extent=2), weights=table)
        distance = np.arange(3)[:, None] - np.arange(3)
        added = np.where((distance >= 0) & (distance < 2), np.einsum("bhmf,mnf->bhmn", r, table[np.clip(distance, 0, 1)]), 0)
        self.near(posenc.attention(q, k, v, form, position_queries=r), attended(q, k, v, added), 1e-12)
        swapped = np.ascontiguousarray(np.swapaxes(r, 1, 2))
        tokens_first = [np.ascontiguousarray(np.swapaxes(one, 1, 2)) for one in (q, k, v)]
        self.near(np.swapaxes(posenc.attention(*tokens_first, form, position_queries=swapped, order="bshd"), 1, 2),
                  attended(q, k, v, added), 1e-12)
        d_table = np.zeros_like(table)
        made = posenc.attention_backward(d, q, k, v, form, position_queries=r, wanted=("q", "position_queries"), d_query_vectors=d_table)
        value = lambda: (posenc.attention(q, k, v, form, position_queries=r) * d).sum()  # noqa: E731
        self.slope(value, r, made.position_queries)
        self.slope(value, table, d_table)
        with self.assertRaises(ValueError):
            posenc.attention_backward(d, q, k, v, wanted=("position_queries",))

    def test_negative_and_fractional_positions(self):
        x = RNG.standard_normal((2, 4, 8))
        form = posenc.prepare(posenc.Rope(dims=8), denominators=[3])
        ids = [-7, -1, 0, 5]
        self.near(posenc.rotate(x.copy(), form, ids=ids), rotated(x, np.array(ids) / 3), 1e-14)
        with self.assertRaises(posenc.Error):
            posenc.prepare(posenc.Alibi(heads=2), denominators=[3])

    def test_positions(self):
        self.assertEqual(list(posenc.packed_positions([3, 2])), [0, 1, 2, 0, 1])
        self.assertEqual(posenc.grid_positions([2, 3]).tolist(), [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]])
        mask = np.array([[0, 1, 1], [1, 1, 1]])
        self.assertEqual(posenc.positions_from_mask(mask).tolist(), [[1, 0, 1], [0, 1, 2]])
        self.assertEqual(posenc.positions_from_mask(mask, rule="roberta").tolist(), [[1, 2, 3], [2, 3, 4]])

    def test_add_backward(self):
        d_table, d_out = np.zeros((3, 2), "f"), np.array([[1, 2], [3, 4], [5, 6]], "f")
        posenc.add_backward(d_table, d_out, ids=[2, 0, 2])
        self.assertEqual(d_table.tolist(), [[3, 4], [0, 0], [6, 8]])

    def test_backends_agree(self):
        x = RNG.standard_normal((3, 7, 16)).astype("f")
        form = posenc.prepare(posenc.Rope(dims=16))
        fast = posenc.rotate(x.copy(), form)
        with posenc.use(threads=1, backend="reference"):
            self.assertEqual(posenc.backend(), "reference")
            self.assertEqual(posenc.rotate(x.copy(), form).tobytes(), fast.tobytes())
        self.assertNotEqual(posenc.backend(), "reference")


if __name__ == "__main__":
    unittest.main()
