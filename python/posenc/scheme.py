"""What every scheme is: a plain, immutable value that JSON can hold."""

from __future__ import annotations

from . import _posenc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Mapping


def _data(value: Any) -> dict[str, Any]:
    """The fields of a scheme or scaling, as in JSON."""
    from dataclasses import fields

    kind = "type" if isinstance(value, Scaling) else "scheme"
    found: dict[str, Any] = {kind: value.name}
    for one in fields(value):
        item = getattr(value, one.name)
        if item is None and one.name == "scaling":
            continue
        found[one.name] = _data(item) if isinstance(item, Scaling) else list(item) if isinstance(item, tuple) else item
    return found


class Scheme:
    """Base class of all positional-encoding schemes."""

    name: ClassVar[str]
    family: ClassVar[str]
    formula: ClassVar[str]
    used_by: ClassVar[str]
    trained_table: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict[str, Any]]  # every scheme is a dataclass

    _json: str  # made with the value, so that torch.compile meets a plain string

    def __post_init__(self) -> None:
        import json

        try:
            object.__setattr__(self, "_json", json.dumps(_data(self)))
        except TypeError as wrong:
            raise TypeError(f"{self.name}: a field has a value that JSON cannot hold ({wrong})") from None

    def to_json(self) -> str:
        """{"scheme": "rope", "dims": 128, …}: as the program, C and C++ read it."""
        return self._json

    def _repr_html_(self) -> str:
        from dataclasses import fields

        from .html import table

        rows = [(one.name, getattr(self, one.name)) for one in fields(self)]
        return table(f"{self.name}: {self.formula}", rows)


class Scaling:
    """Base class of the scalings, which extend RoPE beyond the trained length."""

    name: ClassVar[str]
    formula: ClassVar[str]


def scheme(name_or_json: str | Mapping[str, Any]) -> Scheme:
    """The scheme of this name with default fields, or that of a JSON text. Raises: Error as the library says it."""
    import json

    from .schemes import SCALINGS, SCHEMES

    text = name_or_json if isinstance(name_or_json, str) else json.dumps(name_or_json)
    found = json.loads(_posenc.scheme_json(text))
    kind = SCHEMES[found.pop("scheme")]
    for key, value in found.items():
        if isinstance(value, dict):
            scaling = SCALINGS[value.pop("type")]
            items = {name: tuple(item) if isinstance(item, list) else item for name, item in value.items()}
            found[key] = None if scaling.name == "none" else scaling(**items)
        elif isinstance(value, list):
            found[key] = tuple(value)
    return kind(**found)
