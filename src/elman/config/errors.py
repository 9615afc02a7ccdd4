"""What was wrong with a recipe, in a user's words: the key, what was found there, what is allowed."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

from elman.config.parts import allowed, names_alone
from elman.errors import did_you_mean

_STEP = re.compile(r"[^.\[\]]+|\[\d+\]|\[\.\.\.\]")
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")


def explain(error: msgspec.ValidationError, record: type[msgspec.Struct], raw: Mapping[str, Any]) -> str:
    """One line about a failed conversion of `raw` to `record`: the path of the key, what is there, what is allowed."""
    message, *places = str(error).split(" - at `")
    names_a_key = bool(places) and places[0].startswith("key` in `")
    steps = [step for place in reversed(places) for step in _STEP.findall(place.removeprefix("key` in `").strip("$`"))]
    kind: Any = inspect.type_info(record)
    value, path = raw, ""
    for step in steps:
        kind, step, value = _follow(kind, step, value)
        path = f"{path}{step}" if step.startswith("[") or not path else f"{path}.{step}"
    field = re.search(r"field `(.*)`", message)
    if field and "unknown" in message:
        keys = _keys(kind, value)
        return (
            f"unknown key {_join(path, field[1])}{did_you_mean(field[1], keys)}; here one may write {', '.join(keys)}"
        )
    if field:
        return f"the key {_join(path, field[1])} is missing; write {_allowed(_field(kind, field[1], value))}"
    if names_a_key:
        key = next(key for key in value if not _WHOLE.fullmatch(key))
        return f"{path}: the key {key} is not {_allowed(kind.key_type)}"
    if message.startswith(("Expected", "Invalid")):
        return f"{path} = {_shown(value)}; write {_allowed(kind)}{_with_a_point(value, kind)}"
    return f"{path}: {message}" if path else message


def _with_a_point(value: Any, kind: Any) -> str:
    """The number that text with a decimal comma means, as an example to append."""
    number = str(value).replace(",", ".")
    parts = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    meant = "," in str(value) and number.replace(".", "", 1).isdecimal()
    return f", such as {number}" if meant and any(isinstance(one, inspect.FloatType) for one in parts) else ""


def _follow(kind: Any, step: str, value: Any) -> tuple[Any, str, Any]:
    """The type and the value one step further along a path, and the step as the user knows it."""
    if step == "[...]":
        inner = kind.value_type
        key = next(
            key for key, one in value.items() if type(one) is not int or (inner.ge is not None and one < inner.ge)
        )
        return inner, key, value[key]
    if step.startswith("["):
        index = int(step[1:-1])
        parts = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
        kind = next(one for one in parts if isinstance(one, inspect.TupleType | inspect.VarTupleType))
        inner = kind.item_types[index] if isinstance(kind, inspect.TupleType) else kind.item_type
        return inner, step, value[index]
    return _field(kind, step, value), step, value[step]


def _field(kind: Any, key: str, value: Any) -> Any:
    record = _record(kind, value)
    if record is None or key == record.tag_field:
        return inspect.LiteralType(values=tuple(one.tag for one in _records(kind)))
    return next(field.type for field in record.fields if field.encode_name == key)


def _record(kind: Any, value: Any) -> inspect.StructType | None:
    records = _records(kind)
    tag = value.get("kind") if isinstance(value, Mapping) else None
    return records[0] if len(records) == 1 else next((one for one in records if one.tag == tag), None)


def _records(kind: Any) -> list[inspect.StructType]:
    parts = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    open_parts = [one for part in parts if isinstance(part, inspect.CustomType) for one in allowed(part.cls)]
    found = [inspect.type_info(one) for one in open_parts if isinstance(one, type)]
    return [one for one in (*parts, *found) if isinstance(one, inspect.StructType)]


def _keys(kind: Any, value: Any) -> list[str]:
    record = _record(kind, value)
    assert record is not None
    tag = [] if record.tag_field is None else [record.tag_field]
    return tag + [field.encode_name for field in record.fields]


def _allowed(kind: Any) -> str:
    """What one may write for a type, in words."""
    if isinstance(kind, inspect.UnionType):
        closed = inspect.NoneType | inspect.StructType | inspect.CustomType
        parts = [one for one in kind.types if not isinstance(one, closed)]
        tags = [str(one.tag) for one in _records(kind) if one.tag is not None]
        tables = [_table(tags)] if _records(kind) else []
        return " or ".join([_allowed(one) for one in parts] + tables)
    match kind:
        case inspect.CustomType(cls=cls):
            records, alone = _records(kind), names_alone(cls)
            names = [str(one.tag) for one in records if one.tag is not None and one.tag not in alone]
            tables = [_table(names)] if names or (records and not alone) else []
            listed = alone if records else allowed(cls)
            return " or ".join([*([f"one of {', '.join(map(_shown, listed))}"] if listed else []), *tables])
        case inspect.StructType(tag=tag):
            return _table([] if tag is None else [str(tag)])
        case inspect.DictType(key_type=key, value_type=value):
            return f"a table from {_allowed(key)} to {_allowed(value)}"
        case inspect.LiteralType(values=values):
            return f"{'one of ' if len(values) > 1 else ''}{', '.join(_shown(one) for one in values)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return 'text in quotes ("...")'
        case inspect.IntType():
            return f"a whole number{_bounds(kind)}"
        case inspect.FloatType():
            return f"a number{_bounds(kind)}"
        case inspect.TupleType(item_types=items):
            return f"a list [...] of {len(items)}, each {_allowed(items[0])}"
        case inspect.VarTupleType(item_type=item, min_length=least):
            more = f" with {least} or more" if least else ""
            return f"a list [...]{more}, each {_allowed(item)}"
        case _:
            raise AssertionError(f"a recipe has no values of type {kind}")


def _table(tags: list[str]) -> str:
    if not tags:
        return "a table ({ key = value, ... })"
    return f"a table with kind = {' or '.join(_shown(tag) for tag in tags)}"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    low = f" of {kind.ge:g} or more" if kind.ge is not None else f" above {kind.gt:g}" if kind.gt is not None else ""
    high = f" up to {kind.le:g}" if kind.le is not None else f" below {kind.lt:g}" if kind.lt is not None else ""
    return " and".join(filter(None, [low, high]))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "a table"
    return f"[{', '.join(_shown(one) for one in value)}]" if isinstance(value, list) else str(value)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
