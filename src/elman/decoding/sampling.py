"""Sampling from a language model, one symbol at a time, in constant memory: a text that it reads and continues."""

import dataclasses
from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from elman.config.inference import Sampling
from elman.config.text import TextOptions
from elman.data.text.patterns import sentence_end
from elman.data.text.tokeniser import Detokeniser
from elman.data.text.vocabulary import EOS
from elman.errors import Diverged
from elman.network.model import LanguageModel
from elman.network.state import State


def draw(log_probs: Tensor, sampling: Sampling, generator: Generator | None = None) -> Tensor:
    """Draw one symbol per row from log_probs [B, V]; return them, [B].

    Raises Diverged where they are not numbers.
    """
    require_numbers(log_probs)
    scores = weighed(log_probs, sampling)
    if sampling.temperature == 0:
        return scores.argmax(-1)
    return torch.multinomial(scores.softmax(-1), 1, generator=generator).squeeze(-1)


def require_numbers(log_probs: Tensor) -> None:
    """Raises Diverged where log-probabilities are not numbers."""
    if log_probs.isnan().any():
        raise Diverged(
            "the model's probabilities are not numbers, since its training has diverged; train again with a lower"
            " training.optimiser.lr, or with --adapt give a lower --lr"
        )


def weighed(log_probs: Tensor, sampling: Sampling) -> Tensor:
    """Scores [B, V] whose softmax is drawn from, given log_probs [B, V]: -inf for what is never drawn.

    At temperature 0, where the greatest is taken, they are the log-probabilities of the symbols allowed.
    """
    scores = log_probs.clone()
    if sampling.forbidden:
        scores[:, list(sampling.forbidden)] = -torch.inf
    if sampling.temperature == 0:
        return scores
    scores = scores / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < scores.shape[-1]:
        best = scores.topk(sampling.top_k)
        scores = torch.full_like(scores, -torch.inf).scatter(-1, best.indices, best.values)
    if sampling.top_p is not None and sampling.top_p < 1:
        ordered, order = scores.softmax(-1).sort(dim=-1, descending=True)
        beyond = ordered.cumsum(-1) - ordered >= sampling.top_p
        beyond[:, 0] = False
        scores = scores.masked_fill(beyond.gather(-1, order.argsort(-1)), -torch.inf)
    return scores


@torch.inference_mode()
def read(model: LanguageModel, symbols: Sequence[int], state: State) -> tuple[Tensor, State]:
    """Read symbols; return the log-probabilities [1, V] of the next symbol and the state after them."""
    assert symbols, "there must be at least one symbol to read"
    inputs = torch.tensor(symbols, device=model.device).unsqueeze(1)
    if len(symbols) > 1:
        _, state = model.trace(inputs[:-1], state)
    return model.step(inputs[-1], state)


@torch.inference_mode()
def generate(
    model: LanguageModel,
    prompt: Sequence[int],
    state: State,
    sampling: Sampling,
    generator: Generator | None = None,
    first: Sequence[int] = (),
) -> Iterator[tuple[int, State]]:
    """An endless stream of symbols, each with the state before it was read; memory does not grow.

    The model is in evaluation mode, `state` the state of one sequence before the prompt, which has at least one symbol
    (`<eos>` where a text begins), and the generator on the model's device. `first`: the symbols that may come first, if
    not all.
    """
    log_probs, state = read(model, prompt, state)
    if first:
        log_probs = among(log_probs, first)
    while True:
        symbol = draw(log_probs, sampling, generator)
        yield int(symbol.item()), state
        log_probs, state = model.step(symbol, state)


def among(log_probs: Tensor, symbols: Sequence[int]) -> Tensor:
    """The log-probabilities [B, V] given that one of some symbols comes."""
    others = torch.ones(log_probs.shape[-1], dtype=torch.bool, device=log_probs.device)
    others[list(symbols)] = False
    return log_probs.masked_fill(others, -torch.inf).log_softmax(-1)


_LONGEST = 64
"""Characters that are looked back on; more marks in a row are no sentence."""


class SentenceLimit:
    """The first sentences of a text, up to a number of them.

    A sentence ends at `<eos>` where the run has it: then it is a line or a paragraph. Elsewhere it ends with a final
    mark (`elman.data.text.patterns.sentence_end`). A text that begins within a sentence ends that one first.
    """

    def __init__(self, number: int, options: TextOptions) -> None:
        self._left, self._by_eos = number, options.eos != "none"
        self._undo, self._tail = Detokeniser(options), ""

    @property
    def reached(self) -> bool:
        """Whether no further token belongs to the sentences."""
        return self._left == 0

    def admits(self, word: str) -> bool:
        """Whether a token belongs to the sentences; it must be asked about every token, in order."""
        if self._by_eos:
            self._left -= word == EOS
            return True
        self._tail = (self._tail + self._undo.add(word))[-_LONGEST:]
        while self._left and (end := sentence_end(self._tail)) is not None:
            self._left -= 1
            self._tail = self._tail[end:]
        return not self.reached


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
        first: the symbols that may come next, if not all.
        is_complete: whether the last drawing reached the end of its sentences, if it was limited by them.
    """

    model: LanguageModel
    unread: list[int]
    state: State
    generator: Generator
    sampling: Sampling
    words: Sequence[str]
    options: TextOptions
    first: tuple[int, ...] = ()
    is_complete: bool = True

    def draw(self, tokens: int, sentences: int | None = None) -> Iterator[str]:
        """Draw `tokens` tokens at most, fewer where `sentences` sentences end before (see `SentenceLimit`).

        A token that was drawn to see that a sentence has ended is given back: it is the next one to be drawn.
        """
        limit = None if sentences is None else SentenceLimit(sentences, self.options)
        stream = generate(self.model, self.unread, self.state, self.sampling, self.generator, self.first)
        for _ in range(tokens):
            if limit is not None and limit.reached:
                break
            draws = None if limit is None else self.generator.get_state()
            symbol, state = next(stream)
            if limit is not None and draws is not None and not limit.admits(self.words[symbol]):
                self.generator.set_state(draws)
                break
            self.unread, self.state, self.first = [symbol], state, ()
            yield self.words[symbol]
        self.is_complete = limit is None or limit.reached
