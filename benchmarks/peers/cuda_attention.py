"""cuDNN's attention without position, on the shapes of `./run bench --backend cuda`: the peer of its bars.

python3 cuda_attention.py     needs PyTorch with CUDA; prints TFLOP/s, each launch after a pause
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from timing import median_ms


def measure(batch, heads, tokens, features=128, values=128):
    q, k, v, g = (torch.randn(batch, heads, tokens, size, device="cuda", dtype=torch.bfloat16)
                  for size in (features, features, values, values))
    attend = torch.nn.functional.scaled_dot_product_attention

    def forward():
        attend(q, k, v, is_causal=True)

    leaves = [x.clone().requires_grad_() for x in (q, k, v)]

    def both():
        torch.autograd.grad(attend(*leaves, is_causal=True), leaves, g)

    operations = batch * heads * (features + values) * tokens * tokens
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for what, work, factor in (("attention", forward, 1), ("attention and its gradients", both, 3.5)):
            milliseconds = median_ms(work, 2_000_000)
            print(f"cuDNN without position, {what}, bf16 B{batch} S{tokens} D{features}: {milliseconds:.4f} ms, "
                  f"{factor * operations / milliseconds / 1e9:.0f} TFLOP/s")


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    measure(4, 16, 4096)
    measure(2, 16, 16384)
    measure(4, 8, 4096, 256, 256)
    measure(4, 16, 4096, 192, 128)
