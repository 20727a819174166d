"""A paged cache: tokens into slots, attention over pages and plans, against sums written out in float64; and bad calls."""

import gc
import sys
import threading
import unittest

import numpy as np
import posenc

RNG = np.random.default_rng(11)
HEADS, KEY_HEADS, D, PAGE, PAGES = 4, 2, 8, 4, 10
ROPE = posenc.prepare(posenc.Rope(dims=D))


def rotated(x, positions):
    """RoPE in float64, written out: x is [tokens, heads, features]."""
    x = np.asarray(x, np.float64)
    angle = np.asarray(positions, np.float64)[:, None, None] * 1e4 ** (-np.arange(D // 2) / (D // 2))
    a, b = x[..., :D // 2], x[..., D // 2:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)


def attended(q, k, v, *, window=0, softcap=0.0, scale=None, sinks=None):
    """Causal attention of the last tokens, in float64: q [queries, heads, features], k and v [keys, key heads, features]."""
    many, keys = len(q), len(k)
    k, v = (np.repeat(np.asarray(x, np.float64), q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = np.einsum("qhd,khd->hqk", np.asarray(q, np.float64), k) * (D ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    ahead = np.arange(many)[:, None] + keys - many - np.arange(keys)
    scores = np.where((ahead >= 0) & ((ahead < window) if window else True), scores, -np.inf)
    weights = np.exp(scores)
    weights /= weights.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(np.asarray(sinks, np.float64))[:, None, None])
    return np.einsum("hqk,khd->qhd", weights, v)


def bf16(x):
    """float32 to the bits of bfloat16, rounded to nearest even; and back."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widened(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def tokens(count, heads):
    return RNG.standard_normal((count, heads, D)).astype("f")


def pool(order="bshd", dtype=np.float32):
    return np.zeros((PAGES, PAGE, KEY_HEADS, D) if order == "bshd" else (PAGES, KEY_HEADS, PAGE, D), dtype)


class Slots(unittest.TestCase):
    def test_slots_of(self):
        for pages in ([3, 0, 7], np.array([3, 0, 7], np.int32), np.array([[3, 0, 7], [1, 1, 1]]).T[:, 0]):
            self.assertEqual(list(posenc.slots_of(pages, 4, 3, 6)), [15, 0, 1, 2, 3, 28])
        self.assertEqual(len(posenc.slots_of([], 4, 0, 0)), 0)

    def test_keys_and_values_into_their_slots(self):
        """Every order and type, strided pools, and nothing beside the slots is touched."""
        k = tokens(5, KEY_HEADS)
        slots, ids = [7, 8, 33, -1, 2], [4, 5, 6, 7, 1000]
        wanted = rotated(k, ids)
        for order in ("bshd", "bhsd"):
            for kind in (np.float32, np.float64, np.float16, np.uint16):
                wide = np.full((PAGES, 2, *pool(order).shape[1:]), 3, kind)  # two layers in one array
                cache = wide[:, 1]
                given = {"dtype": "bf16"} if kind is np.uint16 else {}
                x = k if order == "bshd" else np.ascontiguousarray(k.transpose(1, 0, 2))
                for verb, value in (("rotate", wanted), ("copy", k)):
                    call = {"order": "thd" if order == "bshd" else "hsd", **given}
                    made = (posenc.rotate_into(cache, slots, x, ROPE, ids=ids, **call) if verb == "rotate" else
                            posenc.copy_into(cache, slots, x, **call))
                    self.assertIs(made, cache)
                    expected = np.full(wide.shape, 3, np.float64)
                    if kind is np.uint16:
                        expected[:] = widened(np.uint16(3) + np.zeros(1, np.uint16))[0]
                    for token, slot in enumerate(slots):
                        at = expected[slot // PAGE, 1]
                        if slot >= 0:
                            at[(slot % PAGE,) if order == "bshd" else (slice(None), slot % PAGE)] = value[token]
                    got = widened(wide) if kind is np.uint16 else wide
                    bound = {np.float16: 2e-3, np.uint16: 1.5e-2}.get(kind, 2e-6)
                    self.assertLess(float(np.abs(got - expected).max()), bound, (order, kind, verb))

    def test_orders_may_differ(self):
        k = tokens(3, KEY_HEADS)
        one, other = pool("bshd"), pool("bhsd")
        posenc.rotate_into(one, [4, 5, 6], k, ROPE, first=9, order="thd")
        posenc.rotate_into(other, [4, 5, 6], k, ROPE, first=9, order="thd", cache_order="bhsd")
        self.assertEqual(one.transpose(0, 2, 1, 3).tobytes(), other.tobytes())
        self.assertTrue(one.any())

    def test_a_form_without_rotation_copies(self):
        k = tokens(2, KEY_HEADS)
        for form in (posenc.prepare(posenc.Alibi(heads=HEADS)), posenc.prepare("none"), None):
            cache = posenc.rotate_into(pool(), [0, 1], k, form, first=5, order="thd")
            self.assertEqual(cache[0, :2].tobytes(), k.tobytes())

    def test_batches_of_slots(self):
        k = RNG.standard_normal((2, KEY_HEADS, 3, D)).astype("f")
        ids = np.array([[0, 1, 2], [7, 8, 9]])
        cache = posenc.rotate_into(pool("bhsd"), [[0, 1, 2], [20, 21, 22]], k, ROPE, ids=ids)
        for b in range(2):
            wanted = rotated(k[b].transpose(1, 0, 2), ids[b]).transpose(1, 0, 2)
            self.assertLess(np.abs(cache[5 * b, :, :3] - wanted).max(), 2e-6)

    def test_copy_slots_and_shift(self):
        """A gap is closed: the tokens overlap, and their keys move to the positions that they have then."""
        for kind, given, bound in ((np.float32, {}, 4e-6), (np.uint16, {"dtype": "bf16"}, 3e-2)):
            k, v = tokens(11, KEY_HEADS), tokens(11, KEY_HEADS)
            row = [6, 1, 4]
            keys, values = pool(dtype=kind), pool(dtype=kind)
            all_slots = posenc.slots_of(row, PAGE, 0, 11)
            posenc.rotate_into(keys, all_slots, k, ROPE, order="thd", **given)
            posenc.copy_into(values, all_slots, v, order="thd", **given)
            to, source = posenc.slots_of(row, PAGE, 2, 6), posenc.slots_of(row, PAGE, 5, 6)
            for cache in (keys, values):
                self.assertIs(posenc.copy_slots(cache, to, source, order="bshd", **given), cache)
            if kind is np.uint16:  # keys of 16 bits are only shifted far
                with self.assertRaisesRegex(posenc.Error, "shift: bf16 keys decay if shifted by -3"):
                    posenc.shift(keys, ROPE, -3, slots=to, order="bshd", **given)
            for by in (-3,) if kind is np.float32 else (-67, 64):
                self.assertIs(posenc.shift(keys, ROPE, by, slots=to, order="bshd", **given), keys)
            kept = [0, 1, 5, 6, 7, 8, 9, 10]
            flat = [(widened(x) if kind is np.uint16 else x).reshape(-1, KEY_HEADS, D) for x in (keys, values)]
            at = posenc.slots_of(row, PAGE, 0, 8)
            self.assertLess(np.abs(flat[0][at] - rotated(k[kept], range(8))).max(), bound)
            self.assertLess(np.abs(flat[1][at] - v[kept]).max(), bound)
        backwards = np.arange(8.0).reshape(1, 1, 8, 1)
        posenc.copy_slots(backwards, range(8), range(7, -1, -1))
        self.assertEqual(backwards.ravel().tolist(), [7, 6, 5, 4, 3, 2, 1, 0])
        posenc.copy_slots(backwards, [0, -1], [-1, 3])
        self.assertEqual(backwards.ravel().tolist(), [7, 6, 5, 4, 3, 2, 1, 0])

    def test_rerotate_of_a_cache(self):
        other = posenc.prepare(posenc.Rope(dims=D, base=5e5))
        k = RNG.standard_normal((2, 5, D)).astype("f")
        cached = bf16(posenc.rotate(k.copy(), ROPE))
        posenc.rerotate(cached, ROPE, other, dtype="bf16")
        self.assertLess(np.abs(widened(cached) - posenc.rotate(k.copy(), other)).max(), 5e-2)


class Batch:
    """Sequences with their pages; keys and values are those of a model, in float32."""

    def __init__(self, lengths, order="bshd", dtype=np.float32):
        self.given = {"dtype": "bf16"} if dtype is np.uint16 else {}
        self.order, self.free = order, [int(page) for page in RNG.permutation(PAGES)]
        self.keys, self.values = pool(order, dtype), pool(order, dtype)
        self.k, self.v = ([tokens(length, KEY_HEADS) for length in lengths] for _ in range(2))
        self.rows = [[] for _ in lengths]
        self.done = [0 for _ in lengths]

    def append(self, counts):
        """The next tokens of each sequence, written to their slots."""
        slots, ids = [], []
        for s, count in enumerate(counts):
            while len(self.rows[s]) * PAGE < self.done[s] + count:
                self.rows[s].append(self.free.pop())
            slots += list(posenc.slots_of(self.rows[s], PAGE, self.done[s], count))
            ids += range(self.done[s], self.done[s] + count)
            self.done[s] += count
        k, v = (np.concatenate([x[s][self.done[s] - count:self.done[s]] for s, count in enumerate(counts)]) for x in (self.k, self.v))
        posenc.rotate_into(self.keys, slots, k, ROPE, ids=ids, order="thd", cache_order=self.order, **self.given)
        posenc.copy_into(self.values, slots, v, order="thd", cache_order=self.order, **self.given)

    def wanted(self, s, q, **options):
        """What the last len(q) tokens of sequence s get."""
        end = self.done[s]
        return attended(rotated(q, range(end - len(q), end)), rotated(self.k[s][:end], range(end)), self.v[s][:end], **options)


class Pages(unittest.TestCase):
    def test_prompts_and_decoding_tokens_in_one_call(self):
        """Continuous batching: packed queries over pages, in both orders of a pool, with a 16-bit cache too."""
        for order in ("bshd", "bhsd"):
            for dtype, bound in ((np.float32, 5e-6), (np.float16, 5e-3), (np.uint16, 4e-2)):
                batch = Batch([9, 13, 5], order, dtype)
                for counts in ([5, 9, 0], [1, 1, 4], [0, 3, 1], [3, 0, 0]):
                    batch.append(counts)
                    q = tokens(sum(counts), HEADS)
                    out = posenc.attention(q, batch.keys, batch.values, ROPE, causal=True, keys_are_rotated=True, packed=counts,
                                           key_lengths=batch.done, block_table=[row or [-1] for row in batch.rows], order="thd",
                                           cache_order=order, **batch.given)
                    self.assertEqual((out.shape, out.dtype), (q.shape, np.float32))
                    ends = np.cumsum([0, *counts])
                    for s, count in enumerate(counts):
                        if count:
                            mine = slice(ends[s], ends[s + 1])
                            self.assertLess(np.abs(out[mine] - batch.wanted(s, q[mine])).max(), bound, (order, dtype, counts, s))

    def test_what_layers_need_over_pages(self):
        batch = Batch([9, 12])
        batch.append([9, 12])
        q = RNG.standard_normal((2, HEADS, 2, D)).astype("f")
        sinks = RNG.standard_normal(HEADS).astype("f")
        table = np.full((2, 3), -1, np.int32)
        for s, row in enumerate(batch.rows):
            table[s, :len(row)] = row
        for options in ({}, {"window": 3}, {"softcap": 1.5, "scale": 0.9}, {"sinks": sinks}):
            made = posenc.attention(q, batch.keys, batch.values, ROPE, causal=True, keys_are_rotated=True, key_lengths=np.array(batch.done, np.int32),
                                    block_table=table, cache_order="bshd", **options)
            for s in range(2):
                wanted = batch.wanted(s, q[s].transpose(1, 0, 2), **options).transpose(1, 0, 2)
                self.assertLess(np.abs(made[s] - wanted).max(), 5e-6, options)
        table[0, 0] = -1  # before the window of both queries
        made = posenc.attention(q, batch.keys, batch.values, ROPE, causal=True, keys_are_rotated=True, key_lengths=batch.done, window=3,
                                block_table=table, cache_order="bshd")
        self.assertLess(np.abs(made[0] - batch.wanted(0, q[0].transpose(1, 0, 2), window=3).transpose(1, 0, 2)).max(), 5e-6)

    def test_lists_and_arrays_of_pages_are_the_same(self):
        batch = Batch([6, 3])
        batch.append([6, 3])
        q = RNG.standard_normal((2, HEADS, 1, D)).astype("f")
        tables = [batch.rows, tuple(map(tuple, batch.rows)), np.array([batch.rows[0], [*batch.rows[1], -1]]),
                  np.array([batch.rows[0], [*batch.rows[1], -1]], np.int32), np.array([[*batch.rows[0], 99], [*batch.rows[1], -1, 99]], np.int32)[:, :2]]
        made = [posenc.attention(q, batch.keys, batch.values, ROPE, causal=True, keys_are_rotated=True, key_lengths=[6, 3], block_table=table,
                                 cache_order="bshd").tobytes() for table in tables]
        self.assertEqual(len(set(made)), 1)
        self.assertEqual(len(made), 5)

    def test_trees_of_drafts(self):
        """A mask over pages: keys are pages of a row times page size."""
        batch = Batch([6])
        batch.append([6])
        q = tokens(2, HEADS)
        mask = np.zeros((2, 8), bool)
        mask[0, [0, 1, 2, 4]] = mask[1, [0, 1, 2, 5]] = True
        made = posenc.attention(q, batch.keys, batch.values, ROPE, keys_are_rotated=True, packed=[2], key_lengths=[6], block_table=batch.rows,
                                query_positions=[4, 4], mask=mask, order="thd")
        keys = rotated(batch.k[0], range(6))
        for i, seen in enumerate(([0, 1, 2, 4], [0, 1, 2, 5])):
            wanted = attended(rotated(q[i:i + 1], [4]), keys[seen], batch.v[0][seen])
            self.assertLess(np.abs(made[i] - wanted[0]).max(), 5e-6)


class Plans(unittest.TestCase):
    def setUp(self):
        self.batch = Batch([13, 10])
        self.batch.append([5, 2])
        self.lengths, self.table = np.zeros(2, np.int64), np.full((2, 4), -1, np.int32)
        self.q = RNG.standard_normal((2, HEADS, 1, D)).astype("f")
        self.options = {"causal": True, "keys_are_rotated": True, "key_lengths": self.lengths, "block_table": self.table, "cache_order": "bshd"}

    def plan(self, **other):
        return posenc.plan_attention(self.q, self.batch.keys, self.batch.values, ROPE, **{**self.options, **other})

    def step(self):
        self.batch.append([1, 1])
        self.lengths[:] = self.batch.done
        for s, row in enumerate(self.batch.rows):
            self.table[s, :len(row)] = row
        self.q[:] = RNG.standard_normal(self.q.shape)

    def test_steps(self):
        plan = self.plan(threads=1)
        self.assertEqual(plan.threads, 1)
        self.assertGreater(plan.workspace_bytes, 0)
        self.assertIn("1 threads", repr(plan))
        out = np.empty_like(self.q)
        for _ in range(8):
            self.step()
            self.assertIs(plan(self.q, self.batch.keys, self.batch.values, out=out), out)
            whole = posenc.attention(self.q, self.batch.keys, self.batch.values, ROPE, **self.options)
            self.assertEqual(out.tobytes(), whole.tobytes())
            self.assertEqual(plan(self.q, self.batch.keys, self.batch.values).tobytes(), out.tobytes())
            for s in range(2):
                self.assertLess(np.abs(out[s] - self.batch.wanted(s, self.q[s].transpose(1, 0, 2)).transpose(1, 0, 2)).max(), 5e-6)

    def test_it_keeps_what_it_reads(self):
        self.step()
        wanted = posenc.attention(self.q, self.batch.keys, self.batch.values, ROPE, **self.options)
        lengths, table, sinks = self.lengths.copy(), self.table.copy(), np.full(HEADS, -1e30, "f")
        counts = [sys.getrefcount(one) for one in (lengths, table, sinks)]
        plan = self.plan(key_lengths=lengths, block_table=table, sinks=sinks)
        kept = [sys.getrefcount(one) for one in (lengths, table, sinks)]
        self.assertTrue(all(now > before for now, before in zip(kept, counts)), (kept, counts))
        self.assertEqual(plan(self.q, self.batch.keys, self.batch.values).tobytes(), wanted.tobytes())
        alone = self.plan(key_lengths=self.lengths.copy(), block_table=self.table.copy())  # nobody else has these
        junk = [np.full(2, 2**40) for _ in range(1000)]
        self.assertEqual(alone(self.q, self.batch.keys, self.batch.values).tobytes(), wanted.tobytes())
        del plan, junk
        gc.collect()
        self.assertEqual([sys.getrefcount(one) for one in (lengths, table, sinks)], counts)

    def test_threads_share_a_plan(self):
        self.step()
        plan = self.plan(threads=1)
        wanted = plan(self.q, self.batch.keys, self.batch.values).tobytes()
        wrong = []

        def work():
            for _ in range(300):
                if plan(self.q, self.batch.keys, self.batch.values).tobytes() != wanted:
                    wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(wrong, [])

    def test_packed_steps(self):
        """Steps with other numbers of queries of each sequence, and fewer tokens than the plan."""
        counts, most = np.zeros(2, np.int64), 6
        plan = posenc.plan_attention(np.zeros((most, HEADS, D), "f"), self.batch.keys, self.batch.values, ROPE, packed=counts, order="thd",
                                     threads=1, **self.options)
        for step in ([4, 2], [1, 1], [0, 3], [2, 0]):
            self.batch.append(step)
            counts[:], self.lengths[:] = step, self.batch.done
            for s, row in enumerate(self.batch.rows):
                self.table[s, :len(row)] = row
            q = tokens(sum(step), HEADS)
            made = plan(q, self.batch.keys, self.batch.values)
            ends = np.cumsum([0, *step])
            for s, count in enumerate(step):
                if count:
                    mine = slice(ends[s], ends[s + 1])
                    self.assertLess(np.abs(made[mine] - self.batch.wanted(s, q[mine])).max(), 5e-6, (step, s))
        with self.assertRaisesRegex(posenc.Error, "the plan was made for q of type f32"):
            plan(tokens(most + 1, HEADS), self.batch.keys, self.batch.values)

    def test_refusals(self):
        keys, values = self.batch.keys, self.batch.values
        bad = [
            (lambda: self.plan(key_lengths=[6, 3]), TypeError, "key_lengths must be an array, which is read at each call, but is of type list"),
            (lambda: self.plan(block_table=[[1], [2]]), TypeError, "block_table must be an array"),
            (lambda: self.plan(key_lengths=self.lengths.astype(np.int32)), posenc.Error, "key_lengths must be dense i64"),
            (lambda: self.plan(key_lengths=np.zeros(4, np.int64)[::2]), posenc.Error, "key_lengths must be dense i64"),
            (lambda: self.plan(block_table=self.table.astype(np.int64)), posenc.Error, "block_table must be dense i32"),
            (lambda: self.plan(block_table=np.zeros((2, 8), np.int32)[:, ::2]), posenc.Error, "block_table must be dense i32"),
            (lambda: self.plan(packed=[1, 1]), TypeError, "packed must be an array"),
            (lambda: self.plan(packed=np.array([1, 1])), posenc.Error, "packed queries must have a batch of 1 but q has 2"),
            (lambda: self.plan(threads=-1), posenc.Error, "threads must be between 0 and 1024 but is -1"),
            (lambda: self.plan()(self.q[:1], keys, values), posenc.Error, "the plan was made for q of type f32"),
            (lambda: self.plan()(self.q.astype("d"), keys, values), posenc.Error, "the plan was made for q of type f32"),
            (lambda: self.plan()(self.q, keys, values, out=1), TypeError, "out must be an array"),
            (lambda: self.plan()(self.q, None, values, out=self.q), posenc.Error, "k is missing"),
            (lambda: posenc.AttentionPlan(object())(self.q, keys, values), TypeError, "plan_attention"),
        ]
        for number, (call, kind, text) in enumerate(bad):
            with self.subTest(number):
                with self.assertRaisesRegex(kind, text):
                    call()


class Append(unittest.TestCase):
    """A step of a decoder in one call."""

    def test_bytes_of_three_calls(self):
        slots, ids = np.array([9, -1, 3], np.int32), [20, 0, 7]
        q, k, v = tokens(3, HEADS), tokens(3, KEY_HEADS), tokens(3, KEY_HEADS)
        caches = [pool() for _ in range(4)]
        wanted = posenc.rotate(q.copy(), ROPE, ids=ids, order="shd")
        posenc.rotate_into(caches[0], slots, k, ROPE, ids=ids, order="thd")
        posenc.copy_into(caches[1], slots, v, order="thd")
        out = np.zeros_like(q)
        self.assertIs(posenc.append(caches[2], caches[3], slots, q, k, v, ROPE, ids=ids, order="thd", out=out), out)
        self.assertEqual([out.tobytes(), *(one.tobytes() for one in caches[2:])], [wanted.tobytes(), *(one.tobytes() for one in caches[:2])])
        self.assertTrue(caches[2].any())
        self.assertIs(posenc.append(caches[2], caches[3], slots, q, k, v, ROPE, ids=ids, order="thd"), q)  # in place
        self.assertEqual(q.tobytes(), wanted.tobytes())
        self.assertIsNone(posenc.append(caches[2], caches[3], slots, None, k, v, None, order="thd"))
        self.assertEqual(caches[2].reshape(-1, KEY_HEADS, D)[9].tobytes(), k[0].tobytes())

    def test_norm(self):
        q, k, v = tokens(2, HEADS), tokens(2, KEY_HEADS), tokens(2, KEY_HEADS)
        weights = RNG.standard_normal((2, D)).astype("f")

        def normalised(x, weight):
            wide = x.astype(np.float64)
            return wide / np.sqrt((wide ** 2).mean(-1, keepdims=True) + 1e-5) * (weight.astype(np.float64) + 1)

        wanted = rotated(normalised(q, weights[0]), [4, 5])
        keys, values = pool("bhsd"), pool("bhsd")
        made = posenc.append(keys, values, [1, 6], q, k, v, ROPE, first=4, q_norm=weights[0], k_norm=weights[1], eps=1e-5, norm_offset=1,
                             order="thd", cache_order="bhsd")
        self.assertLess(np.abs(made - wanted).max(), 5e-6)
        self.assertLess(np.abs(keys[1, :, 2] - rotated(normalised(k, weights[1]), [4, 5])[1]).max(), 5e-6)
        self.assertEqual(values[0, :, 1].tobytes(), v[0].tobytes())

    def test_refusals(self):
        q, k = tokens(2, HEADS), tokens(2, KEY_HEADS)
        keys, values, before = pool(), pool(), q.copy()
        frozen = q.copy()
        frozen.flags.writeable = False

        def step(to=keys, slots=(0, 1), x=q, **other):
            return lambda: posenc.append(to, values, slots, x, k, k, other.pop("form", ROPE), **{"order": "thd", **other})

        for what, call, kind, text in [
            ("a slot past the cache", step(slots=[0, 40]), posenc.Error, "append: slot 40 is past the end of the cache, which has 40"),
            ("a slot twice", step(slots=[3, 3]), posenc.Error, "append: slot 3 occurs twice"),
            ("no slots", step(slots=None), posenc.Error, "append: slots is missing"),
            ("read-only queries", step(x=frozen), ValueError, "append: q is read-only"),
            ("one cache for both", step(to=values), posenc.Error, "the cache of keys overlaps the cache of values"),
            ("queries of other tokens", step(x=tokens(3, HEADS)), posenc.Error, "append: q has 1 sequences of 3 tokens but k has 1 of 2"),
            ("a norm of other features", step(q_norm=np.ones(3, "f")), posenc.Error, "q_norm has shape"),
            ("a negative eps", step(q_norm=np.ones(D, "f"), eps=-1.0), posenc.Error, "norm_epsilon must be 0 or more"),
            ("an eps that is text", step(eps="1"), TypeError, "float|number"),
            ("an addition", step(form=posenc.prepare(posenc.Sinusoidal(width=D))), posenc.Error, "an addition belongs to the embeddings"),
            ("no keys", lambda: posenc.append(keys, values, [0, 1], q, None, k, ROPE, order="thd"), posenc.Error, "append: k is missing"),
        ]:
            with self.subTest(what):
                with self.assertRaisesRegex(kind, text):
                    call()
                self.assertFalse(keys.any() or values.any())
                self.assertEqual(q.tobytes(), before.tobytes())


E4M3 = np.array([(-1.0) ** (byte >> 7) * (np.nan if byte & 127 == 127 else (byte & 7) * 2.0 ** -9 if not byte & 120
                                              else (8 + (byte & 7)) * 2.0 ** ((byte >> 3 & 15) - 10)) for byte in range(256)])


class Bytes(unittest.TestCase):
    """Caches of e4m3, which numpy has as uint8."""

    def written(self, x, scale):
        """What a quotient is rounded to: the nearest of all that there are."""
        quotient = np.clip(np.asarray(x, np.float32) / np.float32(scale), -448, 448).astype(np.float64)
        return np.abs(E4M3[:127][None, :] - np.abs(quotient).reshape(-1, 1)).min(1).reshape(quotient.shape)

    def test_a_step(self):
        q, k, v = (RNG.standard_normal((5, heads, D)).astype(np.float32) for heads in (HEADS, KEY_HEADS, KEY_HEADS))
        k_scale, v_scale = np.array([0.01, 0.03], np.float32), 0.02
        pools = [np.zeros((PAGES, PAGE, KEY_HEADS, D), np.uint8) for _ in range(4)]
        table, slots = [[7, 2]], posenc.slots_of([7, 2], PAGE, 0, 5)
        posenc.rotate_into(pools[0], slots, k, ROPE, order="thd", cache_order="bshd", scale=k_scale)
        posenc.copy_into(pools[1], slots, v, order="thd", cache_order="bshd", scale=v_scale)
        turned = q.copy()
        posenc.append(pools[2], pools[3], slots, turned, k, v, ROPE, order="thd", cache_order="bshd", k_scale=k_scale, v_scale=v_scale)
        self.assertTrue(all((a == b).all() for a, b in zip(pools[:2], pools[2:])))

        own = [pools[i].reshape(-1, KEY_HEADS, D)[slots] for i in (0, 1)]
        wanted = rotated(k, range(5))
        distance = np.abs(E4M3[own[0]] - wanted / k_scale[:, None])
        self.assertTrue((distance <= self.written(wanted, k_scale[:, None]) + 1e-4).all())
        self.assertTrue((np.abs(E4M3[own[1]] - v / np.float32(v_scale)) <= self.written(v, v_scale) + 1e-4).all())
        got = posenc.attention(q[None], pools[0], pools[1], ROPE, causal=True, keys_are_rotated=True, key_lengths=[5],
                               block_table=table, order="bshd", k_scale=k_scale, v_scale=np.array([v_scale], np.float32))
        want = attended(rotated(q, range(5)), E4M3[own[0]] * k_scale[:, None], E4M3[own[1]] * v_scale)
        np.testing.assert_allclose(got[0], want, atol=2e-6)

    def test_refusals(self):
        pool, k = np.zeros((1, KEY_HEADS, 4, D), np.uint8), np.ones((KEY_HEADS, 1, D), np.float32)
        with self.assertRaisesRegex(posenc.Error, "the scale must be positive and finite but is -1 for head 0"):
            posenc.copy_into(pool, [0], k, scale=-1)
        with self.assertRaisesRegex(posenc.Error, "the scale is for a cache of e4m3, but it has elements of f32"):
            posenc.copy_into(pool.astype(np.float32), [0], k, scale=2)
        with self.assertRaisesRegex(posenc.Error, "shift: keys of e4m3 would be rounded to 8 bits again by each shift"):
            posenc.shift(pool, ROPE, 100, slots=[0])
        self.assertFalse(pool.any())


class Blocks(unittest.TestCase):
    """Caches of q8_0, which numpy has as elements of 34 bytes."""

    D, ROPE = 64, posenc.prepare(posenc.Rope(dims=64))

    def expected(self, x):
        """ggml's bytes of float32 numbers, [..., features]."""
        x = np.asarray(x, np.float32).reshape(*x.shape[:-1], -1, 32)
        d = np.abs(x).max(-1) / np.float32(127)
        scaled = x * np.divide(np.float32(1), d, where=d > 0, out=np.zeros_like(d))[..., None]
        made = np.zeros(d.shape, posenc.q8_0)
        made["scale"] = d
        made["values"] = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # no number here is near to half
        return made

    def test_a_step(self):
        k, v = RNG.standard_normal((2, 5, KEY_HEADS, self.D)).astype(np.float32)
        q = RNG.standard_normal((5, HEADS, self.D)).astype(np.float32)
        pools = [np.zeros((PAGES, PAGE, KEY_HEADS, self.D // 32), posenc.q8_0) for _ in range(4)]
        raw = np.zeros((PAGES, PAGE, KEY_HEADS, self.D // 32 * 34), np.uint8)  # an engine's bytes
        table, slots = [[7, 2]], posenc.slots_of([7, 2], PAGE, 0, 5)
        given = {"order": "thd", "cache_order": "bshd"}
        posenc.rotate_into(pools[0], slots, k, self.ROPE, **given)
        posenc.copy_into(pools[1], slots, v, **given)
        posenc.append(pools[2], pools[3], slots, None, k, v, self.ROPE, **given)
        posenc.copy_into(raw.view(posenc.q8_0), slots, v, **given)
        self.assertEqual([pools[0].tobytes(), pools[1].tobytes()], [pools[2].tobytes(), pools[3].tobytes()])
        self.assertEqual(raw.tobytes(), pools[1].tobytes())
        own = [pool.reshape(-1, KEY_HEADS, self.D // 32)[slots] for pool in pools[:2]]
        self.assertEqual(own[1].tobytes(), self.expected(v).tobytes())
        means = [(x["scale"].astype(float)[..., None] * x["values"]).reshape(5, KEY_HEADS, self.D) for x in own]
        angle = np.arange(5)[:, None, None] * 1e4 ** (-np.arange(32) / 32)
        turned = [np.concatenate([x[..., :32] * np.cos(angle) - x[..., 32:] * np.sin(angle),
                                  x[..., 32:] * np.cos(angle) + x[..., :32] * np.sin(angle)], -1) for x in (q.astype(float), k.astype(float))]
        self.assertLess(np.abs(means[0] - turned[1]).max(), np.abs(turned[1]).max() / 225 + 2.0 ** -18)

        want = attended(turned[0], *means, scale=self.D ** -0.5)
        options = {"causal": True, "keys_are_rotated": True, "key_lengths": np.array([5]), "block_table": np.array([[7, 2]], np.int32)}
        got = posenc.attention(q[None], *pools[:2], self.ROPE, order="bshd", **options)
        self.assertEqual(got.shape, q[None].shape)
        np.testing.assert_allclose(got[0], want, atol=4e-6)
        plan = posenc.plan_attention(q[None], *pools[:2], self.ROPE, order="bshd", **options)
        self.assertEqual(plan(q[None], *pools[:2]).tobytes(), got.tobytes())
        moved = posenc.copy_slots(pools[1], [0], [int(slots[3])], order="bshd")
        self.assertEqual(moved[0, 0].tobytes(), own[1][3].tobytes())

    def test_refusals(self):
        pool, k = np.zeros((1, KEY_HEADS, 4, 2), posenc.q8_0), np.ones((KEY_HEADS, 1, 64), np.float32)
        for call, text in [
            (lambda: posenc.copy_into(pool, [0], k, scale=2), "the scale is for a cache of e4m3, but it has elements of q8_0"),
            (lambda: posenc.copy_into(pool, [0], k[..., :32]), "the cache has 2 heads of 64 features but the tensor has 2 of 32"),
            (lambda: posenc.shift(pool, self.ROPE, 100, slots=[0]), "shift: keys of q8_0 would be rounded to 8 bits again by each shift"),
            (lambda: posenc.rotate(pool, self.ROPE), "rotate: x must be f32, f64, f16 or bf16 but is q8_0"),
            (lambda: posenc.attention(k[None], pool, pool, self.ROPE), "keys of q8_0 are rotated before they are written"),
        ]:
            with self.assertRaisesRegex(posenc.Error, text):
                call()
        with self.assertRaisesRegex(TypeError, "elements of format"):
            posenc.copy_into(pool.view("V34"), [0], k)
        self.assertFalse(pool.view(np.uint8).any())


class Refusals(unittest.TestCase):
    """Each a line that names the argument, and the cache as it was."""

    def test_each(self):
        k = tokens(2, KEY_HEADS)
        cache, q = pool(), tokens(2, HEADS)
        frozen = pool()
        frozen.flags.writeable = False
        broadcast = np.broadcast_to(np.zeros((1, 1, 1, D), "f"), (PAGES, PAGE, KEY_HEADS, D))
        waves = posenc.prepare(posenc.Sinusoidal(width=D))

        def into(to=cache, slots=(0, 1), x=k, form=ROPE, **other):
            return lambda: posenc.rotate_into(to, slots, x, form, **{"order": "thd", **other})

        def attend(**other):
            options = {"packed": [1, 1], "key_lengths": [2, 3], "block_table": [[0], [1]], "order": "thd", **other}
            return lambda: posenc.attention(q, cache, cache, ROPE, causal=True, keys_are_rotated=True, **options)

        bad = [
            ("a list as a cache", into(to=[[0.0]]), TypeError, "rotate_into: cache must be an array .* but is of type list"),
            ("no cache", into(to=None), posenc.Error, "rotate_into: the cache is missing"),
            ("a read-only cache", into(to=frozen), ValueError, "rotate_into: cache is read-only; it is written in place"),
            ("a broadcast cache", into(to=broadcast), ValueError, "rotate_into: cache is read-only"),
            ("a broadcast cache that can be written", into(to=np.lib.stride_tricks.as_strided(pool(), (PAGES, PAGE, KEY_HEADS, D), (0, 0, 4 * D, 4))),
             posenc.Error, "rotate_into: the cache .*stride"),
            ("integers as a cache", into(to=pool(dtype=np.int64)), posenc.Error, "the cache .*i64"),
            ("uint16 without dtype", into(to=pool(dtype=np.uint16)), TypeError, 'rotate_into: cache .*dtype="bf16"'),
            ("a big-endian cache", into(to=pool(dtype=">f4")), TypeError, "rotate_into: cache is big-endian"),
            ("a cache of three axes", into(to=pool()[0]), posenc.Error, "order is 'bshd', but cache has 3 axes"),
            ("an unknown order", into(cache_order="pshd"), posenc.Error, "order is 'pshd'; choose from"),
            ("a slot past the cache", into(slots=[0, 40]), posenc.Error, "rotate_into: slot 40 is past the end of the cache, which has 40"),
            ("a slot twice", into(slots=[3, 3]), posenc.Error, "slot 3 occurs twice"),
            ("too few slots", into(slots=[3]), posenc.Error, "rotate_into: got 1 slots for 1 sequences of 2 tokens"),
            ("slots that are floats", into(slots=np.zeros(2)), NotImplementedError, "rotate_into: slots must be integers"),
            ("a slot that is a float", into(slots=[0.5, 1]), TypeError, "float"),
            ("no slots", into(slots=None), posenc.Error, "rotate_into: slots is missing"),
            ("other heads", into(x=tokens(2, 1)), posenc.Error, "the cache has 2 heads of 8 features but the tensor has 1 of 8"),
            ("other features", into(x=np.zeros((2, KEY_HEADS, 6), "f")), posenc.Error, "rotate_into"),
            ("a scheme", into(form=posenc.Rope(dims=D)), TypeError, "rotate_into: form must be"),
            ("an addition", into(form=waves), posenc.Error, "an addition belongs to the embeddings"),
            ("too few ids", into(ids=[1]), posenc.Error, "rotate_into"),
            ("a position past 2^53", into(first=2**53), posenc.Error, "9007199254740992"),
            ("the cache as k", into(x=cache[0, :2]), posenc.Error, "rotate_into: the cache overlaps k"),
            ("values as floats of slots", lambda: posenc.copy_into(cache, np.zeros(2), k, order="thd"), NotImplementedError, "copy_into: slots must be integers"),
            ("a read-only cache of values", lambda: posenc.copy_into(frozen, [0, 1], k, order="thd"), ValueError, "copy_into: cache is read-only"),
            ("values without slots", lambda: posenc.copy_into(cache, [0], k, order="thd"), posenc.Error, "copy_into: got 1 slots"),
            ("lists of other lengths", lambda: posenc.copy_slots(cache, [0, 1], [2], order="bshd"), posenc.Error, "copy_slots: `to` has 2 slots but `from` has 1"),
            ("a source past the cache", lambda: posenc.copy_slots(cache, [0], [40], order="bshd"), posenc.Error, "slot 40 is past the end of the cache"),
            ("two into one", lambda: posenc.copy_slots(cache, [0, 0], [1, 2], order="bshd"), posenc.Error, "slot 0 occurs twice"),
            ("sources that are floats", lambda: posenc.copy_slots(cache, [0], np.zeros(1), order="bshd"), NotImplementedError, "copy_slots: from must be integers"),
            ("a read-only pool", lambda: posenc.copy_slots(frozen, [0], [1], order="bshd"), ValueError, "copy_slots: cache is read-only"),
            ("a shift of a slot past the cache", lambda: posenc.shift(cache, ROPE, 1, slots=[40], order="bshd"), posenc.Error, "shift: slot 40 is past"),
            ("a shift of a slot twice", lambda: posenc.shift(cache, ROPE, 1, slots=[4, 4], order="bshd"), posenc.Error, "shift: slot 4"),
            ("a shift of a read-only cache", lambda: posenc.shift(frozen, ROPE, 1, slots=[0], order="bshd"), ValueError, "shift: keys is read-only"),
            ("a shift without a rotation", lambda: posenc.shift(cache, waves, 1, slots=[0], order="bshd"), posenc.Error, "must be a rotation"),
            ("a page that is not there", attend(block_table=[[0], [10]]), posenc.Error, "attention: block_table names page 10 but there are 10"),
            ("a negative page", attend(block_table=[[0], [-1]]), posenc.Error, "block_table names page -1 but there are 10"),
            ("a page past 32 bits", attend(block_table=[[0], [2**40]]), posenc.Error, "block_table names page 2147483647 or more"),
            ("one row for two sequences", attend(block_table=[[0, 1]]), posenc.Error, "block_table has 1 rows but key_lengths has 2 numbers"),
            ("a flat list", attend(block_table=[0, 1]), TypeError, "block_table must have a list for each sequence"),
            ("pages that are floats", attend(block_table=np.zeros((2, 1))), NotImplementedError, "attention: block_table must be integers"),
            ("no lengths", attend(key_lengths=None), posenc.Error, "key_lengths"),
            ("a length past the pages", attend(key_lengths=[2, 5]), posenc.Error, "key_lengths is 5 but block_table has 1 pages of 4 tokens"),
            ("packed queries that are not there", attend(packed=[1, 2]), posenc.Error, "attention"),
            ("a negative length", attend(key_lengths=[2, -1]), posenc.Error, "-1"),
            ("no count", lambda: posenc.slots_of([0, 1], 4, 0, -1), posenc.Error, "slots_of: first and count must be 0 or more but are 0 and -1"),
            ("tokens past the pages", lambda: posenc.slots_of([0, 1], 4, 6, 3), posenc.Error, "slots_of: 3 tokens from token 6 on do not fit into 2 pages of 4 tokens"),
            ("a page of nobody", lambda: posenc.slots_of([0, -1], 4, 3, 2), posenc.Error, "slots_of: token 4 is in page -1"),
            ("an empty page", lambda: posenc.slots_of([0], 0, 0, 0), posenc.Error, "page_size must be 1 or more but is 0"),
        ]
        for what, call, kind, text in bad:
            with self.subTest(what):
                with self.assertRaisesRegex(kind, text) as caught:
                    call()
                self.assertNotIn("\n", str(caught.exception))
                self.assertFalse(cache.any() or frozen.any())
        self.assertGreaterEqual(len(bad), 45)

    def test_references(self):
        """A refusal gives every array back."""
        cache, k, slots, table = pool(), tokens(2, KEY_HEADS), np.array([0, 40]), np.array([[99]], np.int32)
        q = tokens(2, HEADS)[:, None].transpose(1, 2, 0, 3)
        counted = (cache, k, slots, table, q, ROPE)
        before = [sys.getrefcount(one) for one in counted]
        for _ in range(100):
            for call in (lambda: posenc.rotate_into(cache, slots, k, ROPE, order="thd"), lambda: posenc.copy_slots(cache, slots, slots[::-1], order="bshd"),
                         lambda: posenc.attention(q, cache, cache, ROPE, key_lengths=[3], block_table=table, cache_order="bshd"),
                         lambda: posenc.plan_attention(q, cache, cache, ROPE, key_lengths=slots, block_table=table, cache_order="bshd")):
                with self.assertRaises(ValueError):
                    call()
        self.assertEqual([sys.getrefcount(one) for one in counted], before)


class Layers(unittest.TestCase):
    def test_options_of_a_model(self):
        config = {"model_type": "gemma2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": D,
                  "query_pre_attn_scalar": 4, "sliding_window": 4, "attn_logit_softcapping": 5.0, "rope_theta": 10000.0, "max_position_embeddings": 64}
        batch = Batch([11])
        batch.append([11])
        q = tokens(3, HEADS)
        for index, window in ((0, 4), (1, 0)):
            layer = posenc.layer(config, index)
            self.assertEqual((layer.options["window"], layer.options["softcap"], layer.options["scale"], layer.first_position), (window, 5.0, 0.5, 0))
            self.assertEqual((layer.form.kind, layer.addition), ("rotation", None))
            made = posenc.attention(q, batch.keys, batch.values, layer.form, keys_are_rotated=True, packed=[3], key_lengths=[11], block_table=batch.rows,
                                    order="thd", **layer.options)
            self.assertLess(np.abs(made - batch.wanted(0, q, window=window, softcap=5.0, scale=0.5)).max(), 5e-6)
            same = posenc.read_model(config).layer(index)
            for name, value in layer.options.items():  # what is there to read is what attention gets
                self.assertEqual(getattr(same, name, None) or None, value or None, name)
        with self.assertRaisesRegex(posenc.Error, "the model has layers 0-1"):
            posenc.layer(config, 2)
        with self.assertRaisesRegex(posenc.Error, "its attention is causal"):
            posenc.layer(config, 0, causal=False)

    def test_sinks(self):
        config = {"model_type": "gpt_oss", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": D, "layer_types": ["full_attention"]}
        with self.assertRaisesRegex(posenc.Error, "it has sinks"):
            posenc.layer(config)
        self.assertTrue(posenc.read_model(config).layer().has_sinks)
        sinks = np.array([1, -2], "f")
        layer = posenc.layer(config, sinks=sinks)
        self.assertIs(layer.options["sinks"], sinks)
        with self.assertRaisesRegex(posenc.Error, "no sinks, but some were given"):
            posenc.layer({"model_type": "llama", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}, sinks=sinks)
        with self.assertRaisesRegex(TypeError, "layer: sinks must be an array"):
            posenc.layer(config, sinks=[1.0, -2.0])

    def test_parts(self):
        config = {"model_type": "t5", "d_model": 16, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_kv": 8}
        for call in (lambda: posenc.layer(config, 0), lambda: posenc.read_model(config).layer(0)):  # which was the encoder's, in silence
            with self.assertRaisesRegex(posenc.Error, "encoder, decoder"):
                call()
        table = RNG.standard_normal((32, 2)).astype("f")
        halves = [posenc.layer(config, 0, part=part, weights=table) for part in ("encoder", "decoder")]
        self.assertEqual([half.options["causal"] for half in halves], [False, True])
        self.assertEqual([half.options["scale"] for half in halves], [1.0, 1.0])
        self.assertEqual([posenc.read_model(config).layer(0, part).causal for part in ("encoder", "decoder")], [False, True])
        x = RNG.standard_normal((2, 5, 8)).astype("f")
        made = [posenc.attention(x, x, x, half.form, **half.options) for half in halves]
        table[:] = 0  # which the forms read where it is
        self.assertNotEqual(posenc.attention(x, x, x, halves[0].form, **halves[0].options).tobytes(), made[0].tobytes())
        with self.assertRaisesRegex(posenc.Error, "no such part"):
            posenc.layer(config, 0, part="middle", weights=table)

    def test_forms_outlive_their_layer(self):
        config = {"model_type": "t5", "d_model": 16, "num_layers": 1, "num_heads": 2, "d_kv": 8}
        form = posenc.layer(config, 0, part="encoder", weights=np.full((32, 2), 7, "f")).form
        gc.collect()
        junk = [np.zeros((32, 2), "f") for _ in range(100)]
        self.assertTrue((posenc.bias(form, 3, 3) == 7).all())
        del junk

    def test_additions_and_notes(self):
        config = {"model_type": "roberta", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 34}
        layer = posenc.layer(config)
        self.assertEqual((layer.form, layer.addition, layer.first_position), (None, None, 2))
        self.assertIn("it was not given", layer.notes[0])
        layer = posenc.layer(config, weights=np.full((34, 16), 3, "f"))
        self.assertEqual(layer.addition.kind, "addition")
        self.assertEqual(posenc.add(np.zeros((1, 16), "f"), layer.addition, first=2).ravel().tolist(), [3.0] * 16)

    def test_temperature(self):
        config = {"model_type": "llama4_text", "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "head_dim": D, "attention_chunk_size": 8,
                  "attn_temperature_tuning": True, "floor_scale": 4, "attn_scale": 0.3, "no_rope_layer_interval": 4}
        layer = posenc.layer(config, 3)
        self.assertEqual((layer.form, layer.options["temperature"], layer.options["chunk"]), (None, (0.3, 4, 1, "steps"), 0))
        self.assertEqual(posenc.layer(config, 0).options["chunk"], 8)
        x = RNG.standard_normal((2, 9, D)).astype("f")
        scores = np.einsum("hqd,hkd->hqk", x, x, dtype=np.float64) * D ** -0.5 * (1 + 0.3 * np.log(1 + (np.arange(9) + 1) // 4))[:, None]
        weights = np.where(np.tri(9, dtype=bool), np.exp(scores), 0)
        wanted = weights / weights.sum(-1, keepdims=True) @ x
        self.assertLess(np.abs(posenc.attention(x, x, x, layer.form, **layer.options) - wanted).max(), 5e-6)


if __name__ == "__main__":
    unittest.main()
