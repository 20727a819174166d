"""Bad calls: each an exception of the right type with the library's own sentence, and nothing written."""

import array
import ctypes
import unittest

import numpy as np
import posenc
from posenc import _posenc

ROPE = posenc.prepare(posenc.Rope(dims=8))
WAVES = posenc.prepare(posenc.Sinusoidal(width=8))
ALIBI = posenc.prepare(posenc.Alibi(heads=2))


def ones(*shape, dtype="f"):
    return np.ones(shape, dtype)


def read_only():
    x = ones(4, 8)
    x.flags.writeable = False
    return x


def unaligned():
    raw = np.zeros(4 * 8 * 4 + 1, np.uint8)
    return raw[1:].view(np.float32).reshape(4, 8)


class Exporter:
    """An array of another library; it exports whatever the test gives it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule


class Tensor(ctypes.Structure):
    """DLTensor, DLManagedTensor and DLManagedTensorVersioned, as dlpack.h declares them."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint8 * 4),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


KEPT = []  # what a capsule points to


def exported(x, device=1, lanes=1, versioned=None, flags=0, offset=0, shape=None, module=None):
    """x as an array of another library exports it; `module` is where its type says that it comes from."""
    shape = (ctypes.c_int64 * x.ndim)(*(x.shape if shape is None else shape))
    tensor = Tensor(x.ctypes.data, (device, 0), x.ndim, (2, 8 * x.itemsize, lanes, 0), shape, None, offset)
    managed = Managed(tensor, None, None) if versioned is None else Versioned(versioned, 0, None, None, flags, tensor)
    name = b"dltensor" if versioned is None else b"dltensor_versioned"
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    KEPT.extend((x, shape, managed, name))
    kind = Exporter if module is None else type("Array", (Exporter,), {"__module__": module})
    return kind(new(ctypes.addressof(managed), name, None))


# What is called, the exception, and a part of its text.
BAD_CALLS = [
    ("a list", lambda: posenc.rotate([[1.0] * 8], ROPE), TypeError, "x must be an array .* but is of type list"),
    ("a number", lambda: posenc.rotate(1.0, ROPE), TypeError, "type float"),
    ("None", lambda: posenc.attention(None, ones(4, 8), ones(4, 8), out=ones(4, 8)), posenc.Error, "q is missing"),
    ("no form", lambda: posenc.rotate(ones(4, 8), None), TypeError, r"rotate: form must be what prepare\(\) returns but is of type NoneType"),
    ("a scheme as a form", lambda: posenc.rotate(ones(4, 8), posenc.Rope()), TypeError, r"pass prepare\(Rope\("),
    ("a scheme in attention", lambda: posenc.attention(ones(4, 8), ones(4, 8), ones(4, 8), posenc.Rope()), TypeError, "attention: form must be"),
    ("a handle of another library", lambda: _posenc.rotate(object(), *2 * [ones(4, 8)], None, None, 0, 1, "bhsd", 0), TypeError, "prepare"),
    ("a device nobody has", lambda: posenc.rotate(exported(ones(4, 8), device=4, versioned=1), ROPE), (ValueError, RuntimeError, NotImplementedError), "device"),
    ("vectors as elements", lambda: posenc.rotate(exported(ones(4, 8), lanes=4, versioned=1), ROPE), (ValueError, NotImplementedError), "lanes"),
    ("a DLPack of the future", lambda: posenc.rotate(exported(ones(4, 8), versioned=9), ROPE), BufferError, "DLPack 9"),
    ("a read-only DLPack", lambda: posenc.rotate(exported(ones(4, 8), versioned=1, flags=1), ROPE), ValueError, "read-only"),
    ("nobody says whether it is read-only", lambda: posenc.rotate(exported(ones(4, 8)), ROPE), TypeError, "does not say whether it is read-only"),
    ("a negative extent", lambda: posenc.rotate(exported(ones(4, 8), versioned=1, shape=(-4, 8)), ROPE), posenc.Error, "-4"),
    ("an unaligned DLPack", lambda: posenc.rotate(exported(ones(4, 8), versioned=1, offset=2), ROPE), posenc.Error, "not aligned"),
    ("an array of jax to write", lambda: posenc.rotate(exported(ones(4, 8), module="jaxlib._jax"), ROPE), TypeError, "x is a jax array, which cannot be written"),
    ("an addition", lambda: posenc.rotate(ones(4, 8), WAVES), posenc.Error, "must be a rotation but is an addition"),
    ("a rotation", lambda: posenc.add(ones(4, 8), ROPE), posenc.Error, "must be an addition but is a rotation"),
    ("no bias", lambda: posenc.bias(ROPE, 2, 2, out=ones(1, 2, 2)), posenc.Error, "must be a bias but is a rotation"),
    ("an addition in attention", lambda: posenc.attention(ones(4, 8), ones(4, 8), ones(4, 8), WAVES), posenc.Error, "addition"),
    ("integers", lambda: posenc.rotate(ones(4, 8, dtype=np.int64), ROPE), posenc.Error, "i64"),
    ("int16", lambda: posenc.rotate(ones(4, 8, dtype=np.int16), ROPE), TypeError, "format 'h'"),
    ("complex", lambda: posenc.rotate(ones(4, 8, dtype=np.complex64), ROPE), TypeError, "format 'Zf'"),
    ("uint16 without dtype", lambda: posenc.rotate(ones(4, 8, dtype=np.uint16), ROPE), TypeError, 'dtype="bf16"'),
    ("objects", lambda: posenc.rotate(np.array([[None] * 8]), ROPE), TypeError, "format 'O'"),
    ("dates", lambda: posenc.rotate(np.zeros((4, 8), "M8[s]"), ROPE), TypeError, "cannot export"),
    ("records", lambda: posenc.rotate(np.zeros((4, 8), [("a", "f4")]), ROPE), TypeError, "format 'T"),
    ("big-endian", lambda: posenc.rotate(ones(4, 8, dtype=">f4"), ROPE), TypeError, "big-endian"),
    ("read-only", lambda: posenc.rotate(read_only(), ROPE), ValueError, "x is read-only"),
    ("a read-only out", lambda: posenc.rotate(ones(4, 8), ROPE, out=read_only()), ValueError, "out is read-only"),
    ("bytes", lambda: posenc.rotate(memoryview(bytes(128)).cast("f", (4, 8)), ROPE), ValueError, "read-only"),
    ("unaligned", lambda: posenc.rotate(unaligned(), ROPE), posenc.Error, "not aligned"),
    ("a broadcast view", lambda: posenc.rotate(np.lib.stride_tricks.as_strided(ones(8), (4, 8), (0, 4)), ROPE), posenc.Error, "stride"),
    ("nine axes", lambda: posenc.rotate(ones(1, 1, 1, 1, 1, 1, 1, 4, 8), ROPE), posenc.Error, "9 dimensions"),
    ("one axis", lambda: posenc.rotate(ones(8), ROPE), posenc.Error, "rotate"),
    ("too few features", lambda: posenc.rotate(ones(4, 6), ROPE), posenc.Error, "8"),
    ("another width", lambda: posenc.add(ones(4, 6), WAVES), posenc.Error, "8"),
    ("an out of another shape", lambda: posenc.rotate(ones(4, 8), ROPE, out=ones(5, 8)), posenc.Error, "out"),
    ("an unknown order", lambda: posenc.rotate(ones(4, 8), ROPE, order="dsb"), posenc.Error, "choose from"),
    ("an order of other axes", lambda: posenc.rotate(ones(4, 8), ROPE, order="bshd"), posenc.Error, "x has 2 axes"),
    ("a position before -2^53", lambda: posenc.rotate(ones(4, 8), ROPE, first=-(2**53)), posenc.Error, "-9007199254740992"),
    ("a negative row", lambda: posenc.add(ones(4, 8), posenc.prepare(posenc.Learned(rows=4, width=8), weights=ones(4, 8)), first=-1), posenc.Error, "-1"),
    ("a position past 2^53", lambda: posenc.rotate(ones(4, 8), ROPE, first=2**53), posenc.Error, "9007199254740992"),
    ("a position past 64 bits", lambda: posenc.rotate(ones(4, 8), ROPE, first=2**70), OverflowError, "too"),
    ("half a position", lambda: posenc.rotate(ones(4, 8), ROPE, first=0.5), TypeError, "ids must be an array"),
    ("too few ids", lambda: posenc.rotate(ones(4, 8), ROPE, ids=[1, 2]), posenc.Error, "2"),
    ("ids that are floats", lambda: posenc.rotate(ones(4, 8), ROPE, ids=np.zeros(4)), NotImplementedError, "must be integers"),
    ("an id past 2^53", lambda: posenc.rotate(ones(4, 8), ROPE, ids=[0, 1, 2**53, 2]), posenc.Error, "9007199254740992"),
    ("keys without an out", lambda: posenc.rotate((ones(4, 8), ones(4, 8)), ROPE, out=(ones(4, 8), None)), TypeError, "out"),
    ("k of other features", lambda: posenc.attention(ones(4, 8), ones(4, 6), ones(4, 8)), posenc.Error, "attention"),
    ("heads that do not divide", lambda: posenc.attention(ones(3, 4, 8), ones(2, 4, 8), ones(2, 4, 8)), posenc.Error, "head"),
    ("mixed types", lambda: posenc.attention(ones(4, 8), ones(4, 8, dtype="d"), ones(4, 8)), posenc.Error, "f64"),
    ("a bias of other heads", lambda: posenc.attention(ones(3, 4, 8), ones(3, 4, 8), ones(3, 4, 8), ALIBI), posenc.Error, "2"),
    ("a negative window", lambda: posenc.attention(ones(4, 8), ones(4, 8), ones(4, 8), window=-1), posenc.Error, "window"),
    ("a mask of another size", lambda: posenc.attention(ones(4, 8), ones(4, 8), ones(4, 8), key_mask=[1, 1]), posenc.Error, "mask"),
    ("a scale that is no number", lambda: posenc.attention(ones(4, 8), ones(4, 8), ones(4, 8), scale="1"), TypeError, "real number"),
    ("odd dims", lambda: posenc.prepare(posenc.Rope(dims=7)), posenc.Error, "dims must be .*even but is 7"),
    ("a field of another type", lambda: posenc.prepare(posenc.Rope(dims="8")), posenc.Error, "an integer"),
    ("an unknown scheme", lambda: posenc.scheme("rop"), posenc.Error, "rope"),
    ("an unknown field", lambda: posenc.scheme('{"scheme": "rope", "dimms": 8}'), posenc.Error, "did you mean 'dims'"),
    ("no JSON", lambda: posenc.scheme("{"), posenc.Error, "line 1"),
    ("no length", lambda: posenc.prepare(posenc.Rope(scaling=posenc.DynamicScaling())), posenc.Error, "length"),
    ("no weights", lambda: posenc.prepare(posenc.T5()), posenc.Error, "weights|table"),
    ("weights of another shape", lambda: posenc.prepare(posenc.T5(), weights=ones(3, 8)), posenc.Error, "32"),
    ("weights nobody wants", lambda: posenc.prepare(posenc.Rope(), weights=ones(3, 8)), posenc.Error, "rope"),
    ("an unknown backend", lambda: posenc.force_backend("abacus"), posenc.Error, "abacus"),
    ("negative threads", lambda: posenc.set_threads(-3), posenc.Error, "set_threads"),
    ("a capsule of something else", lambda: posenc.rotate(Exporter(posenc.rotate), ROPE), (ValueError, TypeError), ""),
    ("no count", lambda: posenc.tabulate(WAVES), TypeError, "count, ids or out"),
    ("another dtype", lambda: posenc.tabulate(WAVES, count=2, dtype="i8"), ValueError, "'i8'"),
    ("a table of a bias", lambda: posenc.tabulate(ALIBI, count=2), posenc.Error, "must be an addition but is a bias"),
    ("lengths that are too long", lambda: posenc.attention(ones(1, 1, 4, 8), ones(1, 1, 4, 8), ones(1, 1, 4, 8), key_lengths=[9]), posenc.Error, "9"),
    ("an unknown gradient", lambda: posenc.attention_backward(ones(4, 8), ones(4, 8), ones(4, 8), ones(4, 8), wanted=("z",)), ValueError, "'z'"),
    ("neither scheme nor model", lambda: posenc.check(ones(4, 8), ones(4, 8)), TypeError, "model="),
    ("shapes that differ", lambda: posenc.diagnose(ones(4, 8), ones(5, 8)), posenc.Error, "diagnose"),
    ("a negative length", lambda: posenc.packed_positions([3, -1]), posenc.Error, "-1"),
]


class BadCalls(unittest.TestCase):
    def test_each(self):
        self.assertGreaterEqual(len(BAD_CALLS), 40)
        for what, call, kind, text in BAD_CALLS:
            with self.subTest(what):
                with self.assertRaisesRegex(kind, text):
                    call()

    def test_nothing_is_written(self):
        x = ones(4, 8)
        out = ones(4, 8)
        for call in (lambda: posenc.rotate(x, ROPE, ids=[0, 1, 2, 2**53]), lambda: posenc.rotate(x, WAVES), lambda: posenc.add(x, WAVES, first=2**53),
                     lambda: posenc.attention(x, x, ones(4, 6), out=out), lambda: posenc.rotate(x, ROPE, order="hsd")):
            with self.assertRaises(ValueError):
                call()
            self.assertTrue((x == 1).all() and (out == 1).all())

    def test_arrays_of_other_libraries_are_read(self):
        """What says that it may be read only, and what does not say anything, can be an input."""
        wanted = posenc.rotate(ones(4, 8), ROPE)
        for x in (exported(ones(4, 8)), exported(ones(4, 8), versioned=1, flags=1), exported(ones(4, 8), module="jaxlib._jax")):
            self.assertTrue((posenc.rotate(x, ROPE, out=np.zeros((4, 8), "f")) == wanted).all())
        x = ones(4, 8)
        posenc.rotate(exported(x, versioned=1), ROPE)  # in place
        self.assertTrue((x == wanted).all())

    def test_error_is_a_value_error(self):
        self.assertTrue(issubclass(posenc.Error, ValueError))
        self.assertEqual(posenc.Error.__module__, "posenc")

    def test_sequences_and_arrays_of_ids(self):
        wanted = posenc.rotate(ones(3, 8), ROPE, first=4)
        for ids in ([4, 5, 6], (4, 5, 6), range(4, 7), array.array("q", [4, 5, 6]), np.array([4, 5, 6]), np.array([4, 0, 5, 0, 6, 0])[::2],
                    np.array([4, 5, 6], np.int32)):
            self.assertTrue((posenc.rotate(ones(3, 8), ROPE, ids=ids) == wanted).all())
        self.assertTrue((posenc.rotate(ones(3, 8), ROPE, first=np.int64(4)) == wanted).all())


if __name__ == "__main__":
    unittest.main()
