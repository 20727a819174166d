"""posenc.jax: arrays are values. Numbers against numpy's, gradients against jax's own, bfloat16, jit."""

import os
import sys
import unittest

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: jax is not built for it")
    sys.exit(77)
try:
    import jax
except ImportError:
    print("jax is not installed")
    sys.exit(77)
import numpy as np
import posenc
import posenc.jax as pj
from jax import numpy as jnp

jax.config.update("jax_enable_x64", True)
YARN = posenc.prepare(posenc.Rope(dims=8, scaling=posenc.YarnScaling(factor=4)))
RNG = np.random.default_rng(11)
CPU = jax.devices("cpu")[0]


def array(*shape, dtype=np.float32):
    return jax.device_put(RNG.standard_normal(shape).astype(dtype), CPU)


def rotated(x, first):
    """RoPE with YaRN's magnitude, as jax computes it."""
    angle = (first + jnp.arange(x.shape[-2]))[:, None] * jnp.asarray(YARN.frequencies)
    a, b = x[..., :4], x[..., 4:]
    cos, sin = YARN.magnitude * jnp.cos(angle), YARN.magnitude * jnp.sin(angle)
    return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), -1)


class Values(unittest.TestCase):
    def same(self, made, wanted):
        self.assertIsInstance(made, jax.Array)
        self.assertEqual(made.dtype, wanted.dtype)
        self.assertEqual(np.asarray(made).tobytes(), np.asarray(wanted).tobytes())

    def test_rotate_is_that_of_numpy_and_leaves_its_argument(self):
        for dtype in (np.float32, np.float64, np.float16):
            x = array(2, 3, 5, 8, dtype=dtype)
            before = np.array(x)
            self.same(pj.rotate(x, YARN, first=7), posenc.rotate(before.copy(), YARN, first=7))
            self.assertEqual(np.asarray(x).tobytes(), before.tobytes())
        ids = jnp.asarray([4, 0, 9, 9, 1])
        self.same(pj.rotate(x, YARN, ids=ids), posenc.rotate(before.copy(), YARN, ids=np.asarray(ids)))

    def test_bf16(self):
        x = array(3, 5, 8).astype(jnp.bfloat16)
        wanted = posenc.rotate(np.array(x).view(np.uint16), YARN, dtype="bf16")
        made = pj.rotate(x, YARN)
        self.assertEqual(made.dtype, jnp.bfloat16)
        self.assertEqual(np.asarray(made).tobytes(), wanted.tobytes())
        self.assertEqual(pj.attention(x, x, x, YARN, causal=True).dtype, jnp.bfloat16)
        self.assertEqual(pj.tabulate(YARN, count=3, dtype="bf16")[0].dtype, jnp.bfloat16)

    def test_rotated_q_and_k_are_rounded_where_asked(self):
        rope = posenc.prepare(posenc.Rope(dims=16))
        x = (0.5 * array(2, 48, 16)).astype(jnp.bfloat16)  # not so hot that one key has all the weight
        rotated = pj.rotate(x, rope)
        before = pj.attention(rotated, rotated, x, causal=True, scale=1.0)
        self.assertTrue(bool((pj.attention(x, x, x, rope, causal=True, scale=1.0, rounds_rotated=True) == before).all()))
        self.assertFalse(bool((pj.attention(x, x, x, rope, causal=True, scale=1.0) == before).all()))

    def test_others(self):
        x = array(2, 5, 8)
        waves = posenc.prepare(posenc.Sinusoidal(width=8))
        self.same(pj.add(x, waves, first=3), posenc.add(np.array(x), waves, first=3))
        self.same(pj.tabulate(waves, count=4), posenc.tabulate(waves, count=4))
        alibi = posenc.prepare(posenc.Alibi(heads=2))
        self.same(pj.bias(alibi, 3, 4), posenc.bias(alibi, 3, 4))
        self.same(pj.attention(x, x, x, alibi, causal=True), posenc.attention(*3 * [np.asarray(x)], alibi, causal=True))

    def test_plain_verbs_read_arrays_of_jax_and_never_write_them(self):
        x = array(2, 5, 8)
        before = np.array(x)
        out = posenc.rotate(x, YARN, out=np.empty_like(before))
        self.assertEqual(out.tobytes(), posenc.rotate(before.copy(), YARN).tobytes())
        with self.assertRaisesRegex(TypeError, "x is a jax array, which cannot be written"):
            posenc.rotate(x, YARN)
        self.assertEqual(np.asarray(x).tobytes(), before.tobytes())


class Gradients(unittest.TestCase):
    def near(self, made, wanted):
        self.assertLess(float(jnp.abs(made - wanted).max()), 1e-12)

    def test_rotate(self):
        x, weight = array(2, 5, 8, dtype=np.float64), array(2, 5, 8, dtype=np.float64)
        self.near(pj.rotate(x, YARN, first=3), rotated(x, 3))
        made = jax.grad(lambda x: (pj.rotate(x, YARN, first=3) * weight).sum())(x)
        self.near(made, jax.grad(lambda x: (rotated(x, 3) * weight).sum())(x))

    def test_attention(self):
        q, k, v = (array(2, 5, 8, dtype=np.float64) for _ in range(3))

        def theirs(q, k, v):
            scores = rotated(q, 0) @ jnp.swapaxes(rotated(k, 0), -1, -2) / jnp.sqrt(8.0) * YARN.softmax_factor
            return jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -jnp.inf), -1) @ v

        self.near(pj.attention(q, k, v, YARN, causal=True), theirs(q, k, v))
        made = jax.grad(lambda *x: jnp.sin(pj.attention(*x, YARN, causal=True)).sum(), (0, 1, 2))(q, k, v)
        for one, other in zip(made, jax.grad(lambda *x: jnp.sin(theirs(*x)).sum(), (0, 1, 2))(q, k, v)):
            self.near(one, other)

    def test_jit(self):
        q = array(2, 5, 8, dtype=np.float64)

        def plain(q):
            return (pj.attention(pj.rotate(q, YARN), q, q, causal=True) ** 2).sum()

        with jax.default_device(CPU):
            self.near(jax.jit(plain)(q), plain(q))
            self.near(jax.jit(jax.grad(plain))(q), jax.grad(plain)(q))


class Refusals(unittest.TestCase):
    def test_each(self):
        x = array(2, 5, 8)
        for call, kind, text in (
                (lambda: pj.rotate(x, posenc.Rope(dims=8)), TypeError, "form must be what prepare"),
                (lambda: pj.rotate(x[..., :6], YARN), posenc.Error, "8"),
                (lambda: pj.attention(x, x, x, out=np.empty(x.shape, "f")), TypeError, "out= is not taken"),
                (lambda: jax.jit(lambda ids: pj.rotate(x, YARN, ids=ids))(jnp.arange(5)), NotImplementedError, "ids is traced"),
                (lambda: jax.vmap(lambda x: pj.rotate(x, YARN))(x), Exception, "")):
            with self.assertRaisesRegex(kind, text):
                call()


if __name__ == "__main__":
    unittest.main()
