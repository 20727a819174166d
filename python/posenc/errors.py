"""What posenc raises beyond Python's own exceptions."""

from ._posenc import Error

__all__ = ["Error"]
