"""A served run on text as what reads: each tab keeps the prefixes that it has read."""

from elman.network.model import LanguageModel
from elman.network.state import State
from elman.serve import questions
from elman.serve.adapted import Adapted
from elman.serve.limits import Limits
from elman.serve.prefixes import Prefixes, Scored
from elman.serve.service import Service, place_in
from elman.serve.tabs import Tab
from elman.serve.text_reading import Text, read_text
from elman.serve.worker import Work
from elman.tasks.text.run import TextRun


class TextReader(Service):
    """A run on text, read from where the prefixes of a tab end."""

    kind = "text"

    def __init__(self, name: str, run: TextRun, limits: Limits) -> None:
        super().__init__(name, run, limits)
        self.run = run

    def prefixes(self, tab: Tab) -> Prefixes:
        """What the tab has read."""
        return tab.keep(self.name, Prefixes, self._fresh)

    def _fresh(self) -> Prefixes:
        return Prefixes(self.run.first, self.limits.tab_megabytes, self.run.spaces)

    def placed(self, question: questions.Placed, tab: Tab) -> Work[tuple[Text, tuple[LanguageModel, list[int], State]]]:
        """The text of a question; the model, the symbols still to be read and the state before them at its position."""
        adapted = tab.find(self.name, Adapted)
        text = read_text(self.run, question.text, known_only=adapted is not None)
        position = place_in(question.position, text.length)
        if adapted is None:
            unread, state = yield from self.prefixes(tab).place(text.symbols, position)
            return text, (text.symbols.model, unread, state)
        yield from adapted.read(text.symbols.ids)
        unread, state = yield from self._fresh().place(text.symbols._replace(model=adapted.model), position)
        return text, (adapted.model, unread, state)

    def scored(self, text: Text, tab: Tab) -> Work[list[Scored]]:
        """How the tokens of a text were predicted, by the model as it was trained."""
        return (yield from self.prefixes(tab).read(text.symbols))
