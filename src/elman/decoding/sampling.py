"""Sampling from a language model, one symbol at a time, in constant memory."""

from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from elman.config.inference import Sampling
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
    """Raises UserError where log-probabilities are not numbers, since the model has diverged."""
    if log_probs.isnan().any():
        raise Diverged(
            "the model's probabilities are not numbers, since its training has diverged; train again with a lower"
            " training.optimiser.lr"
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
        smallest = scores.topk(sampling.top_k).values[:, -1:]
        scores = scores.masked_fill(scores < smallest, -torch.inf)
    if sampling.top_p is not None and sampling.top_p < 1:
        ordered, order = scores.softmax(-1).sort(dim=-1, descending=True)
        beyond = ordered.cumsum(-1) - ordered >= sampling.top_p
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
    model: LanguageModel, prompt: Sequence[int], state: State, sampling: Sampling, generator: Generator | None = None
) -> Iterator[tuple[int, State]]:
    """An endless stream of symbols, each with the state before it was read; memory does not grow.

    The model is in evaluation mode, `state` that of one sequence before the prompt, which has at least one symbol
    (`<eos>` where a text begins), and the generator on the model's device.
    """
    log_probs, state = read(model, prompt, state)
    while True:
        symbol = draw(log_probs, sampling, generator)
        yield int(symbol.item()), state
        log_probs, state = model.step(symbol, state)
