"""What every kind of data has in a recipe."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from elman.config.parts import find
from elman.config.record import TOKENS, Reporting


class Data:
    """A recipe's data: a record with the tag field `kind`, whose other keys are options.

    The key `kind` names a module of `elman.config` that holds the record, or one that a plug-in adds.

    Attributes:
        corpus: where the data is; None: where --data says
        digest: of the data, in the recipe of a run
        encoders: the kinds of encoders that read it
        command: the command of elman that uses its runs, for messages
        reporting: how losses are reported
        task: the class of the task, "module:Name", a subclass of `elman.tasks.task.Task`
        own_core: the kind of core that reads it and nothing else, if there is one
    """

    __slots__ = ()
    folder: ClassVar[str] = "elman.config"
    encoders: ClassVar[tuple[str, ...]]
    command: ClassVar[str]
    reporting: ClassVar[Reporting]
    task: ClassVar[str]
    own_core: ClassVar[str | None] = None

    if TYPE_CHECKING:
        corpus: str | None
        digest: str | None
        evaluation: Any

    def changed(self, **keys: Any) -> Self:
        """The same data with other keys."""
        return msgspec.structs.replace(self, **keys)  # type: ignore[type-var]

    @property
    def options(self) -> Any:
        """How the data is read, without where it is from: what digests depend on."""
        raise NotImplementedError


def reporting_of(kind: Any) -> Reporting:
    """How a kind of data is reported; one that is not known here as tokens."""
    found = find(Data, kind) if isinstance(kind, str) else None
    return TOKENS if found is None else found.reporting
