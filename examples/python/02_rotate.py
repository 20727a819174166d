"""RoPE in place: the axes in any order, positions of your own, the way back."""

import numpy as np
import posenc

rope = posenc.prepare(posenc.Rope(dims=4, base=500_000.0))
q = np.zeros((2, 2, 4), np.float32)  # [sequence, heads, features], as torch's projections give them
q[..., :2] = 1
posenc.rotate(q, rope, first=1, order="shd")
print("position 1:", np.round(q[0, 0], 3), " position 2:", np.round(q[1, 0], 3))
posenc.rotate(q, rope.inverse(), first=1, order="shd")
print("and back:  ", np.round(q[0, 0], 3) + 0.0)

packed = posenc.packed_positions([3, 2])  # two sequences, one after another
x = np.ones((5, 4), np.float32)
posenc.rotate(x, rope, ids=packed)
print("packed:", packed, "so rows 0 and 3 are equal:", bool((x[0] == x[3]).all()))
# prints:
# position 1: [0.54  1.    0.841 0.001]  position 2: [-0.416  1.     0.909  0.003]
# and back:   [1. 1. 0. 0.]
# packed: [0 1 2 0 1] so rows 0 and 3 are equal: True
