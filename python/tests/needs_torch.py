"""Imported first by tests that need torch: where it cannot be used, the test ends as skipped (77), and says why."""

import os
import sys
import warnings

if os.environ.get("POSENC_SANITIZE"):
    print("not with a sanitizer: torch is not built for it")
    sys.exit(77)
try:
    import torch  # noqa: F401
except ImportError:
    print("torch is not installed: python3-torch")
    sys.exit(77)
warnings.simplefilter("ignore")  # torch's own
