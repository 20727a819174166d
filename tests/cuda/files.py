"""Files through `--backend cuda`: attention of float32 is within its error of the cpu's. Then PyTorch takes all memory of the GPU
but two GiB, of which a process needs half a GiB for itself. `apply`, which reads a file of any size in blocks, still gives the
bytes of the cpu; `attend`, whose tensors are copied whole, refuses in one line.

files.py PROGRAM FOLDER      FOLDER holds f32-cpu.npy and f32-cuda.npy, of `attend`
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

LEFT = 2 << 30
ERROR_OF_F32 = 4e-6  # attention.h


def run(*arguments):
    """One call of the program, and how long it took."""
    start = time.monotonic()
    subprocess.run([str(argument) for argument in arguments], check=True)
    return time.monotonic() - start


def check_f32(folder):
    """Attention of float32 on the GPU against the cpu's."""
    got, want = (np.load(folder / f"f32-{backend}.npy").astype(np.float64) for backend in ("cuda", "cpu"))
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    print(f"attend of f32, cuda against cpu: {error:.1e} of the norm")
    assert error < ERROR_OF_F32, error


def ballast():
    """All memory of the GPU but LEFT, for as long as the result lives; None where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    free, _ = torch.cuda.mem_get_info()
    taken = torch.empty(free - LEFT, dtype=torch.uint8, device="cuda")
    print(f"{torch.cuda.mem_get_info()[0] / 2**30:.1f} GiB of the GPU's memory are left of {free / 2**30:.1f}")
    return taken


def main(program, folder):
    check_f32(folder)
    random = np.random.default_rng(1)
    tokens, heads = 3 << 18, 8
    piece = random.standard_normal((1 << 14, heads, 128), dtype=np.float32)
    x = np.lib.format.open_memmap(folder / "large.npy", "w+", np.float32, (tokens, heads, 128))
    for first in range(0, tokens, len(piece)):
        x[first:first + len(piece)] = piece
    del x
    apply = [program, "apply", "rope", folder / "large.npy", "--axes", "shd", "--quiet", "-o"]
    seconds = run(*apply, folder / "cpu.large.npy", "--backend", "cpu")
    print(f"apply rope, {4 * tokens * heads * 128 / 2**30:.0f} GiB of f32, cpu: {seconds:.1f} s")
    # 16 bits of random numbers near 1: the exponent of bf16 is kept.
    shape = (96, 1 << 16, 64)
    for name in "qkv":
        values = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", "V2", shape)
        bits = random.integers(0, 1 << 16, shape[1:], dtype=np.uint16)
        for head in range(shape[0]):
            values[head] = ((np.roll(bits, head) & 0x807F) | 0x3F00).view("V2")
        del values
    attend = [program, "attend", "alibi", "--q", folder / "q.npy", "--k", folder / "k.npy", "--v", folder / "v.npy", "--axes",
              "hsd", "--dtype", "bf16", "--causal", "--window", "128", "--backend", "cuda", "--quiet", "-o"]
    taken = ballast()
    if taken is None:
        print("PyTorch is not installed: all memory is free, and nothing is refused")
    seconds = run(*apply, folder / "cuda.large.npy", "--backend", "cuda")
    print(f"apply rope, the same, cuda: {seconds:.1f} s")
    run("cmp", folder / "cpu.large.npy", folder / "cuda.large.npy")
    if taken is not None:
        made = subprocess.run([str(word) for word in attend + [folder / "no.npy"]], capture_output=True, text=True, check=False)
        print(f"attend alibi, 4 x {2 * np.prod(shape) / 2**30:.2f} GiB of bf16: {made.stderr.strip()}")
        assert made.returncode != 0 and made.stderr.count("\n") == 1 and "of the GPU's memory are free" in made.stderr, made
        assert not (folder / "no.npy").exists()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
