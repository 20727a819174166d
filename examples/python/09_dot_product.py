"""The dot product of two sinusoidal positions in plain numpy, and exactly: it depends only on the distance."""

import numpy as np

import posenc


def sinusoids(positions, width, base=10000.0):
    """Vaswani et al. 2017, §3.5, in float32 as most code computes it."""
    frequencies = base ** (-np.arange(0, width, 2) / width)
    angles = np.asarray(positions, np.float32)[:, None] * frequencies.astype(np.float32)
    rows = np.empty((len(positions), width), np.float32)
    rows[:, 0::2], rows[:, 1::2] = np.sin(angles), np.cos(angles)
    return rows


width, distance = 64, 7
exact = posenc.prepare(posenc.Sinusoidal(width=width))
closed_form = sum(np.cos(distance * 10000.0 ** (-2 * i / width)) for i in range(width // 2))
print(f"closed form, sum of cos(distance * frequency): {closed_form:.3f}")
for first in (0, 1000, 1_000_000, 100_000_000):
    pair = [first, first + distance]
    by_numpy = sinusoids(pair, width).astype(np.float64)
    by_posenc = posenc.tabulate(exact, ids=pair, dtype="f64")
    print(f"position {first:>11,}: numpy in float32 {by_numpy[0] @ by_numpy[1]:.3f}, posenc {by_posenc[0] @ by_posenc[1]:.3f}")

# prints:
# closed form, sum of cos(distance * frequency): 23.264
# position           0: numpy in float32 23.264, posenc 23.264
# position       1,000: numpy in float32 23.264, posenc 23.264
# position   1,000,000: numpy in float32 23.252, posenc 23.264
# position 100,000,000: numpy in float32 21.902, posenc 23.264
