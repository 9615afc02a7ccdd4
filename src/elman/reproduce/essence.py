"""What a recipe says, as far as it changes anything."""

from typing import Any

import msgspec


def essence(value: Any) -> Any:
    """A record as plain values, without what it leaves at its default: a new key with a default changes no digest."""
    if not isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, str_keys=True)
    kept: dict[str, Any] = {"kind": value.__struct_config__.tag}
    for field in msgspec.structs.fields(value):
        default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        found = getattr(value, field.name)
        if found != default:
            kept[field.encode_name] = essence(found)
    return kept
