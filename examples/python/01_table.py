"""A table of sinusoids, and one of cosines and sines far out, where float32 angles are off."""

import posenc

table = posenc.tabulate(posenc.prepare(posenc.Sinusoidal(width=4)), count=3)
for position, row in enumerate(table):
    print(position, *(f"{value:6.3f}" for value in row))

exact, _ = posenc.tabulate(posenc.prepare(posenc.Rope(dims=8)), first=1_000_003, count=1)
rounded, _ = posenc.tabulate(posenc.prepare(posenc.Rope(dims=8), numerics="hf-f32"), first=1_000_003, count=1)
print(f"position 1,000,003: float32 angles are off by {abs(exact - rounded).max():.4f}")
# prints:
# 0  0.000  1.000  0.000  1.000
# 1  0.841  0.540  0.010  1.000
# 2  0.909 -0.416  0.020  1.000
# position 1,000,003: float32 angles are off by 0.0012
