"""Parameters as a .safetensors file, which `posenc inspect` and any reader of that format can open."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch

from .attend import scheme_of
from .jobs import Job


def write(path: Path, weights: Any, job: Job) -> None:
    """Writes float32 tensors; the file appears whole or not at all."""
    config = {"model_type": "posenc-lab", "position": json.loads(scheme_of(job.position, job.shape, weights)._json), "num_hidden_layers": job.shape.layers,
              "num_attention_heads": job.shape.heads, "hidden_size": job.shape.width, "vocab_size": 256, "max_position_embeddings": job.length,
              "is_causal": job.task != "masked"}
    header: dict[str, Any] = {"__metadata__": {"config": json.dumps(config), "job": json.dumps(job.to_json())}}
    parts, end = [], 0
    for name, value in weights.items():
        data = value.detach().float().cpu().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [end, end + len(data)]}
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(f".{os.getpid()}.part")
    scratch.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
    scratch.replace(path)


def read(path: Path) -> Any:
    """The float32 tensors of such a file by name; those without elements are left out."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    made = {}
    for name, facts in header.items():
        if name == "__metadata__" or facts["dtype"] != "F32":
            continue
        begin, end = (8 + size + one for one in facts["data_offsets"])
        if begin == end:
            continue
        made[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(facts["shape"]).clone()
    return made
