"""A model of sequences of symbols or of frames of notes: encoder, recurrent core, output layer."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elman.network.cores.core import RecurrentCore, Trace
from elman.network.encoders.characters import Characters
from elman.network.encoders.encoder import TokenEncoder
from elman.network.output.layer import OutputLayer
from elman.network.state import State


class LanguageModel(nn.Module):
    """p(next symbol | symbols so far), with the state as an explicit value.

    Shapes: T steps, B sequences side by side, V symbols. In models of music a symbol is a frame of P notes: inputs
    and targets are [T, B, P], `log_probs` and `step` give way to `sample`. Nothing is remembered between calls: what
    carries a sequence from one call to the next is the state that the caller holds.

    Example:
        >>> from elman.network.build.model import tiny_model
        >>> model = tiny_model(num_words=7).eval()
        >>> state = model.begin(1)
        >>> log_probs, state = model.step(torch.tensor([3]), state)
        >>> round(log_probs.exp().sum().item(), 5)
        1.0

    """

    def __init__(self, encoder: TokenEncoder, core: RecurrentCore, output: OutputLayer) -> None:
        super().__init__()
        self.encoder, self.core, self.output = encoder, core, output

    def knowing(self, words: Sequence[str]) -> "LanguageModel":
        """The same model, its parameters shared, that reads symbol V + i as the i-th of `words`.

        It goes on predicting the V symbols of its vocabulary. Its encoder must read spelling.
        """
        assert isinstance(self.encoder, Characters), "only an encoder of spelling knows other words"
        wider = LanguageModel(self.encoder.knowing(words), self.core, self.output)
        wider.training = self.training
        return wider

    def begin(self, batch: int) -> State:
        """The state of `batch` sequences that have not begun."""
        return self.core.begin(batch)

    def trace(self, inputs: Tensor, state: State) -> tuple[Trace, State]:
        """What the core makes of inputs [T, B]."""
        return self.core(self.encoder(inputs), state)

    def log_prob(self, inputs: Tensor, targets: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probability [T, B] (nats) of targets [T, B], each given the inputs up to its position."""
        trace, state = self.trace(inputs, state)
        return self.output.log_prob(trace, targets), state

    def log_probs(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities [T, B, V] of every symbol to follow each position of inputs [T, B]."""
        trace, state = self.trace(inputs, state)
        return self.output.log_probs(trace), state

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one symbol a sequence, [B]; give the log-probabilities [B, V] of the next and the new state."""
        log_probs, state = self.log_probs(symbols.unsqueeze(0), state)
        return log_probs.squeeze(0), state

    def sample(
        self, frames: Tensor, state: State, temperature: float = 1.0, generator: torch.Generator | None = None
    ) -> tuple[Tensor, State]:
        """Frames [T, B, P] drawn to follow each of the frames [T, B, P], and the state after them; for music."""
        trace, state = self.trace(frames, state)
        return self.output.sample(trace, temperature, generator), state

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.parameters()).device
