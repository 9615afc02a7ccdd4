"""Parts of a recipe that are one of several kinds: a family, its members, and how a recipe names one.

A family is a class with a `folder`, mostly a subclass of `Part`: the package, or the module, that holds its members.
The member of kind "min-gru" is a record in the module `min_gru` of a package, or in its module `record` where `min_gru`
is a package itself; a module holds all members of a small family. Nothing lists them: a new member is a new file.
Plug-ins add members by `register`.
"""

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, TypeVar

import msgspec

from elman.config.record import Record
from elman.errors import UserError


class Part(Record, frozen=True, tag_field="kind"):
    """A part that is one of several kinds, which its key `kind` names."""

    folder: ClassVar[str]


class Built:
    """What a record builds: `class JordanCore(RecurrentCore, of=Jordan)` is made of a `Jordan` by its `build`."""

    def __init_subclass__(cls, of: Any = None) -> None:
        super().__init_subclass__()
        if of is not None:

            def build(record: Any, *surroundings: Any) -> Any:
                return cls(record, *surroundings)  # type: ignore[call-arg]

            build.__annotations__["return"] = cls.__name__
            of.build = build


def tag_of(part: Any) -> str:
    """What a recipe writes as the `kind` of a part."""
    return str(part.__struct_config__.tag)


F = TypeVar("F")

_registered: dict[type, dict[str, type]] = {}


def is_member(one: object, family: type) -> bool:
    """Whether something is a record of a family with a kind of its own; an abstract one has its class's name for it."""
    if not (isinstance(one, type) and issubclass(one, family) and issubclass(one, msgspec.Struct)):
        return False
    settings = one.__struct_config__
    return settings.tag not in (None, one.__name__) and settings.tag_field == "kind"


def folder_of(family: type) -> str:
    return str(vars(family)["folder"])


def register(member: type, family: type) -> None:
    """Add a member to a family; raises UserError where its kind is taken."""
    if find(family, tag_of(member)) is not None:
        raise UserError(f"the name {tag_of(member)!r} is taken; choose another")
    _registered.setdefault(family, {})[tag_of(member)] = member


def unregister(member: type, family: type) -> None:
    """Take a member back that `register` has added."""
    del _registered[family][tag_of(member)]


def find(family: type[F], kind: str) -> type[F] | None:
    """The member of a family with this kind; None where there is none."""
    return _registered.get(family, {}).get(kind) or _own(family, kind)  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _own(family: Any, kind: str) -> Any:
    place = importlib.import_module(folder_of(family))
    if hasattr(place, "__path__"):
        name = kind.replace("-", "_")
        if not name.isidentifier() or name not in _modules(place):
            return None
        place = _member_module(place, name)
    found: Iterator[type] = _members_in(place, family)
    return next((one for one in found if tag_of(one) == kind), None)


def members(family: type[F]) -> dict[str, type[F]]:
    """All members of a family by their kinds, plug-ins last; imports all of them."""
    own = {tag_of(one): one for module in modules_of(family) for one in _members_in(module, family)}
    return own | added(family)


def added(family: type[F]) -> dict[str, type[F]]:
    """The members that `register` has added, by their kinds."""
    return _registered.get(family, {})


def own_kinds(family: type) -> list[str]:
    """The names of the modules in the package of a family, which are not imported."""
    return _modules(importlib.import_module(folder_of(family)))


def modules_of(family: type) -> Iterator[ModuleType]:
    """The modules in which the members of a family are; imports one after the other."""
    place = importlib.import_module(folder_of(family))
    yield place
    for name in _modules(place) if hasattr(place, "__path__") else ():
        yield _member_module(place, name)


def part_of(value: Any, family: type) -> Any:
    """The member that a recipe names: by its kind alone, as it is without keys, or as the record itself."""
    if not isinstance(value, str):
        return value
    found: Any = find(family, value)
    if found is None:
        raise UserError(f"{value!r} is none of {', '.join(members(family))}")
    return found()


def default(family: type, kind: str) -> Any:
    """A default of a field: the member of this kind as it is without keys, which is imported when it is needed."""

    def made() -> Any:
        found: type | None = find(family, kind)
        assert found is not None, f"{folder_of(family)} has no {kind}"
        return found()

    return msgspec.field(default_factory=made)


def _modules(package: ModuleType) -> list[str]:
    return [one.name for one in pkgutil.iter_modules(package.__path__)]


def _member_module(package: ModuleType, name: str) -> ModuleType:
    module = importlib.import_module(f"{package.__name__}.{name}")
    has_record = hasattr(module, "__path__") and "record" in _modules(module)
    return importlib.import_module(f"{module.__name__}.record") if has_record else module


def _members_in(module: ModuleType, family: type[F]) -> Iterator[type[F]]:
    for one in vars(module).values():
        if is_member(one, family) and f"{one.__module__}.".startswith(f"{module.__name__}."):
            yield one


class _Open(type):
    """The type of a field that takes any member of a family; what it takes is found when a recipe is read."""

    family: type

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.family)


class _Named(_Open):
    """The type of a field that takes a member of a family, or the kind alone of one that needs no keys."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str | cls.family)


class _Keyed(type):
    """The type of a field that takes a record, to whose keys plug-ins add the members of a family by their kinds."""

    record: type
    family: type

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.record)

    def opened(cls) -> type[Record]:
        """The record with a key for each member that plug-ins have added."""
        return _with_keys(cls.record, tuple(_registered.get(cls.family, {}).values()))


@functools.cache
def _with_keys(record: type, added: tuple[type, ...]) -> type[Record]:
    fields = [
        (tag_of(one).replace("-", "_"), one | msgspec.UnsetType, msgspec.field(default=msgspec.UNSET, name=tag_of(one)))
        for one in added
    ]
    made: Any = msgspec.defstruct(record.__name__, fields, bases=(record,), frozen=True, kw_only=True)
    return made


class _Later(type):
    """The type of a field that takes one record, which is imported when a recipe has it."""

    place: str

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, resolve_name(cls.place))


def later(place: str) -> type:
    """The type of a field that takes the record of this place, `"module:Name"`."""
    return _Later(place.partition(":")[2], (), {"place": place})


def keyed(record: type, family: type) -> type:
    """The type of a field that takes a record, to whose keys plug-ins add the members of a family by their kinds."""
    return _Keyed(record.__name__, (), {"record": record, "family": family})


class _Name(type):
    """The type of a field that takes one of the names in a table, to which plug-ins add."""

    table: str

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str)


T = TypeVar("T")

if TYPE_CHECKING:
    OneOf: TypeAlias = Annotated[T, "a member of the family T"]
    Named: TypeAlias = Annotated[str | T, "a member of the family T, or its kind"]
    Activation: TypeAlias = str
else:
    Activation = _Name("Activation", (), {"table": "elman.network.output.activation:ACTIVATIONS"})

    class OneOf:
        """`OneOf[Family]` is the annotation of a field that takes any member of a family."""

        def __class_getitem__(cls, family: type) -> _Open:
            return _Open(family.__name__, (), {"family": family})

    class Named:
        """`Named[Family]` is the annotation of a field that takes any member of a family, or its kind alone."""

        def __class_getitem__(cls, family: type) -> _Named:
            return _Named(family.__name__, (), {"family": family})


def convert(raw: Any, record: type[T]) -> T:
    """A record from plain values; raises msgspec.ValidationError.

    The path of what is wrong within a member follows its message, innermost first: `... - at `$.key` - at `$.path``.
    """
    return msgspec.convert(raw, record, str_keys=True, dec_hook=_decode)


def _decode(kind: Any, value: Any) -> Any:
    if isinstance(kind, _Name):
        if not isinstance(value, str):
            raise ValueError(f"Expected `str`, got `{type(value).__name__}`")
        if value not in resolve_name(kind.table):
            raise ValueError(f"Invalid value {value!r}")
        return value
    if isinstance(value, str) and value not in names_alone(kind):
        raise ValueError(f"Invalid value {value!r}" if isinstance(kind, _Named) else "Expected `object`, got `str`")
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
    if isinstance(kind, _Later):
        found = resolve_name(kind.place)
    elif isinstance(kind, _Keyed):
        found = kind.opened() if _registered.get(kind.family, {}).keys() & value.keys() else kind.record
    elif "kind" not in value:
        raise ValueError("Object missing required field `kind`")
    else:
        found = find(kind.family, value["kind"]) if isinstance(value["kind"], str) else None
        if found is None:
            raise ValueError(f"Invalid value {value['kind']!r} - at `$.kind`")
    try:
        return convert(value, found)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def allowed(kind: type) -> list[type] | list[str]:
    """What the type of an open field takes: the members of its family, its one record, or the names of its table."""
    if isinstance(kind, _Name):
        return list(resolve_name(kind.table))
    if isinstance(kind, _Later):
        return [resolve_name(kind.place)]
    if isinstance(kind, _Keyed):
        return [kind.opened()]
    assert isinstance(kind, _Open), kind
    return list(members(kind.family).values())


def names_alone(kind: type) -> list[str]:
    """The kinds that may stand without a table in a field of this type: members that need no keys."""
    if not isinstance(kind, _Named):
        return []
    found: dict[str, Any] = members(kind.family)
    return [tag for tag, member in found.items() if not any(one.required for one in msgspec.structs.fields(member))]
