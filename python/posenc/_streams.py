"""The current stream of an array library, for calls on a GPU; used only by the extension."""

import sys
from typing import Any


def stream_of(array: Any) -> int:
    """The address of the stream on which `array`'s library orders its work."""
    library = type(array).__module__.partition(".")[0]
    if library == "torch" or "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor):
        import torch

        return int(torch.cuda.current_stream(array.device).cuda_stream)
    if library == "cupy":
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)
    raise NotImplementedError(f"the current stream of {library} is not known to posenc; pass torch or cupy arrays")
