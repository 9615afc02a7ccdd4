"""What every kind of data has in a recipe."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from elman.config.parts import find
from elman.config.record import TOKENS, Reporting, restricted

if TYPE_CHECKING:
    from elman.config.recipe import Recipe


class Data:
    """A recipe's data: a record with the tag field `kind`, whose other keys are options.

    The key `kind` names a package of `elman.kinds`, whose module `record` holds the record, or one that a plug-in adds;
    text is the kind of the core (`elman.config.text`).

    Attributes:
        corpus: where the data is; None: where --data says
        digest: of the data, in the recipe of a run
        encoders: the kinds of encoders that read it
        command: the command of elman that uses its runs, for messages
        reporting: how losses are reported
        task: the class of the task, "module:Name", a subclass of `elman.tasks.task.Task`
        own_core: the kind of core that reads it and nothing else, if there is one
        has_source: whether what is predicted depends on a source, which a part of the model reads
        looks: of a plug-in, the module that recognises such data (`elman.data.kinds`), if there is one
        proposal: the module that proposes recipes for such data (`elman.tasks.proposal.choose`), if there is one
        suffixes: of a plug-in, of names of files that promise such data
        needs: what is read, in words, for messages
    """

    __slots__ = ()
    folder: ClassVar[str] = "elman.kinds"
    encoders: ClassVar[tuple[str, ...]]
    command: ClassVar[str]
    reporting: ClassVar[Reporting]
    task: ClassVar[str]
    own_core: ClassVar[str | None] = None
    has_source: ClassVar[bool] = False
    looks: ClassVar[str | None] = None
    proposal: ClassVar[str | None] = None
    suffixes: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[str] = ""

    if TYPE_CHECKING:
        corpus: str | None
        digest: str | None
        evaluation: Any

    def changed(self, **keys: Any) -> Self:
        return msgspec.structs.replace(self, **keys)  # type: ignore[type-var]

    @property
    def options(self) -> Any:
        """How the data is read, without where it is from: what digests depend on.

        By default the part of the record that the first of its base classes declares.
        """
        return restricted(self, type(self).__bases__[0])

    def check(self, recipe: "Recipe") -> None:
        """Raise ValueError where other parts of a recipe do not suit the data."""


def reporting_of(kind: Any) -> Reporting:
    """How a kind of data is reported; an unknown kind is reported as tokens."""
    found = find(Data, kind) if isinstance(kind, str) else None
    return TOKENS if found is None else found.reporting
