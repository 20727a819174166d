"""A T5 bias that learns, with torch: its table gets a gradient, and no array of queries × keys is made."""

import posenc
import torch
from posenc.torch import RelativeBias

torch.manual_seed(0)
q, k, v, goal = torch.randn(4, 1, 2, 16, 8)
bias = RelativeBias(posenc.T5(heads=2, buckets=8, max_distance=12))
optimizer = torch.optim.SGD(bias.parameters(), lr=0.2)
losses = []
for step in range(60):
    optimizer.zero_grad()
    loss = (bias.attention(q, k, v, scale=1.0) - goal).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("the loss falls:", losses[-1] < losses[0], "and the table is", list(bias.table.shape))
# prints:
# the loss falls: True and the table is [8, 2]
