"""dataclass of Python 3.10: its fields can be given by name alone (kw_only), in Python 3.9 as well."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 10):
    from dataclasses import dataclass
else:
    import dataclasses
    import functools
    from typing import Any, Callable

    def dataclass(*, kw_only: bool = False, **options: Any) -> Callable[[type], type]:
        def decorate(kind: type) -> type:
            made = dataclasses.dataclass(**options)(kind)
            if kw_only:
                initialise = made.__init__

                @functools.wraps(initialise)
                def __init__(self: Any, **fields: Any) -> None:
                    initialise(self, **fields)

                made.__init__ = __init__
            return made

        return decorate


__all__ = ["dataclass"]
