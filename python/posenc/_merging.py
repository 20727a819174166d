"""posenc.merge for tensors of torch on a GPU."""

from __future__ import annotations

import torch


def merge_by_torch(out: torch.Tensor, lse: torch.Tensor, other: torch.Tensor, other_lse: torch.Tensor, order: str = "bhsd") -> None:
    """In several passes: shares in float64, sums in float32, or in float64 if a side is. Error: 3 · 2^-24 · max(|out|, |other|) (float64:
    2^-53), and half an ulp of out if that is narrower. A side without keys (−inf) is not read, and a row that has keys keeps its bits."""
    if order in ("bshd", "shd", "thd"):
        out, other = out.transpose(-2, -3), other.transpose(-2, -3)
    for name, x, shape in (("other", other, out.shape), ("logsumexp", lse, out.shape[:-1]), ("other_logsumexp", other_lse, out.shape[:-1])):
        if x.shape != shape:
            raise ValueError(f"merge: {name} has shape {list(x.shape)} but must have {list(shape)}")
        if x.device != out.device:
            raise ValueError(f"merge: {name} is on {x.device}, out on {out.device}")
    logs = lse.double(), other_lse.double()
    has_no_key = [torch.isneginf(log) for log in logs]
    none = has_no_key[0] & has_no_key[1]
    largest = torch.maximum(*logs).masked_fill_(none, 0)
    kept, taken = (torch.exp(log - largest) for log in logs)
    total = kept + taken
    lse.copy_(largest + torch.log(total))
    total.masked_fill_(none, 1)
    wide = torch.promote_types(torch.promote_types(out.dtype, other.dtype), torch.float32)
    kept, taken = ((share / total).to(wide).unsqueeze(-1) for share in (kept, taken))
    no_own, no_other = (one.unsqueeze(-1) for one in has_no_key)
    merged = kept * out.masked_fill(no_own, 0) + taken * other.masked_fill(no_other, 0)
    out.copy_(torch.where(no_other & torch.isfinite(logs[0]).unsqueeze(-1), out.to(wide), merged))
