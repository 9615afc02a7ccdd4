"""A text that a model reads and continues, once or by turns, in constant memory."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import repeat

from torch import Generator

from elman.config.inference import Sampling
from elman.config.text import TextOptions
from elman.decoding.sampling import generate
from elman.decoding.sentences import SentenceLimit
from elman.network.model import LanguageModel
from elman.network.state import State


@dataclasses.dataclass
class Continuation:
    """A text up to the last token that was drawn, however the drawing ended.

    Attributes:
        model: in evaluation mode.
        unread: the symbols that are still to be read, at least one.
        state: the state before them.
        generator: of the draws, on the model's device.
        sampling: how tokens are drawn.
        words: the tokens of the symbols.
        options: how the text was tokenised.
        is_complete: whether the last drawing reached the end of its sentences, if it was limited by them.
    """

    model: LanguageModel
    unread: list[int]
    state: State
    generator: Generator
    sampling: Sampling
    words: Sequence[str]
    options: TextOptions
    is_complete: bool = True

    def draw(self, tokens: int, sentences: int | None = None) -> Iterator[str]:
        """Draw so many tokens at most, fewer where so many sentences end (see `SentenceLimit`).

        A token that was drawn to see that a sentence has ended is given back: it is the next one to be drawn.
        """
        limit = None if sentences is None else SentenceLimit(sentences, self.options)
        stream = generate(self.model, self.unread, self.state, self.sampling, self.generator)
        for _ in repeat(None, tokens):
            if limit is not None and limit.reached:
                break
            draws = None if limit is None else self.generator.get_state()
            symbol, state = next(stream)
            if limit is not None and draws is not None and not limit.admits(self.words[symbol]):
                self.generator.set_state(draws)
                break
            self.unread, self.state = [symbol], state
            yield self.words[symbol]
        self.is_complete = limit is None or limit.reached
