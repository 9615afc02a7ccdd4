"""A run that is served: which questions it answers, each as work for the thread that computes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Generic, TypeVar

from elman.errors import UserError
from elman.serve import answers
from elman.serve.limits import Limits, Refused
from elman.serve.tabs import Tab
from elman.tasks.run import Run

RunT = TypeVar("RunT", bound=Run)
Answer = Callable[[Any, Tab], Generator[Any, None, Any]]  # a question and its tab to work, or to the events of a stream


class Service(ABC, Generic[RunT]):
    """A run under a name; `answers` holds its operations by their names.

    A subclass answers for one kind of data. Questions with a text or a roll that is too long are refused, and those
    with fields that are for runs of another kind. `static` names the function, "module:name", that writes the graphs of
    such a run for a page without a server and returns what the page must know of the model.
    """

    kind: ClassVar[str]
    static: ClassVar[str]
    foreign: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, run: RunT, limits: Limits) -> None:
        self.name, self.run, self.limits = name, run, limits
        self.parameters = sum(one.numel() for one in run.model.parameters())
        self.answers: dict[str, Answer] = {}

    @abstractmethod
    def facts(self) -> answers.RunFacts:
        """What the page must know of it."""

    def _facts(self, size: int, **own: Any) -> answers.RunFacts:
        """The facts that every kind has, with the vocabulary's size, and its `own`."""
        usual: dict[str, Any] = {"panels": [*self.answers], "layers": 0, "parameters": self.parameters}
        title = self.run.recipe.title
        return answers.RunFacts(name=self.name, title=title, kind=self.kind, size=size, **usual | own)

    def ask(self, operation: str, question: Any, tab: Tab) -> Generator[Any, None, Any]:
        """The work of an operation; raises UserError where this run has no answer to it."""
        answer = self.answers.get(operation)
        if answer is None:
            raise UserError(f"{self.name} is a run on {self.kind} that does not answer {operation}")
        self.check(question)
        return answer(question, tab)

    def check(self, question: Any) -> None:
        """Raise `Refused` where a question is too long, or UserError where a field has no meaning here."""
        limits = self.limits
        for name in self.foreign:
            if getattr(question, name, None):
                raise UserError(f"{name} is not for runs on {self.kind}; leave it out")
        texts = [getattr(question, name, "") for name in ("text", "word")]
        texts += [text for pair in getattr(question, "pairs", ()) for text in (pair.good, pair.bad)]
        if (length := sum(map(len, texts))) > limits.text:
            raise Refused(413, f"the text has {length:,} characters; at most {limits.text:,} are read")
        for name in ("roll", "after_roll", "after"):
            if (length := len(getattr(question, name, ()))) > limits.steps:
                raise Refused(413, f"{name} has {length:,} steps; at most {limits.steps:,} are read")
        if (drawn := getattr(question, "drawn", 0)) > limits.drawn:
            raise Refused(413, f"{drawn:,} are to be drawn; at most {limits.drawn:,} are drawn at once")


def place_in(position: int | None, length: int, unit: str = "tokens") -> int:
    """A position within a text of this length; None is its end. Raises UserError where it lies beyond."""
    if position is None:
        return length
    if position > length:
        raise UserError(f"position is {position}, and the text has {length} {unit}")
    return position
