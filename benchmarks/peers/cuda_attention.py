"""cuDNN's attention without position, on the shapes of `posenc bench --backend cuda`: the peer of its bars.

python3 cuda_attention.py     needs PyTorch with CUDA; prints TFLOP/s, each launch after a pause
"""

import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

FEATURES = 128


def measure(batch, heads, tokens):
    q, k, v = (torch.randn(batch, heads, tokens, FEATURES, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    times = []
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for round_number in range(8):
            time.sleep(0.06)
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(200_000)  # so that the launch from Python does not count
            before.record()
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            after.record()
            after.synchronize()
            if round_number > 0:
                times.append(before.elapsed_time(after))
    milliseconds = statistics.median(times)
    operations = 4 * batch * heads * FEATURES * tokens * tokens / 2
    print(f"cuDNN without position, bf16 B{batch} S{tokens}: {milliseconds:.4f} ms, "
          f"{operations / milliseconds / 1e9:.0f} TFLOP/s")


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    measure(4, 16, 4096)
    measure(2, 16, 16384)
