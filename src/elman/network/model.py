"""A model of sequences of symbols or of frames of notes: encoder, recurrent core, output layer."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int, Shaped
from torch import Generator, Tensor, nn

from elman import config
from elman.network.cores.core import RecurrentCore, Trace
from elman.network.encoders.encoder import TokenEncoder
from elman.network.output.layer import OutputLayer
from elman.network.state import State


class LanguageModel(nn.Module):
    """p(next symbol | symbols so far), with the state as an explicit value.

    Shapes: T steps, B parallel sequences, V symbols. In models of music a symbol is a frame of P notes: inputs and
    targets are [T, B, P], and `sample` takes the place of `log_probs` and `step`. The model keeps nothing between
    calls: the caller passes the state from one call to the next. A window has a step or more; `trace`, and with it
    `log_prob`, `log_probs` and `sample`, raise ValueError where T is 0.

    Example:
        >>> from elman.network.build import tiny_model
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
        """A model with the same parameters that also reads symbol V + i, as the i-th of `words`.

        It still predicts the V symbols of its vocabulary. Its encoder must read spelling.
        """
        from elman.network.encoders.characters import CharactersEncoder

        assert isinstance(self.encoder, CharactersEncoder), "only an encoder of spelling knows other words"
        wider = type(self)(self.encoder.knowing(words), self.core, self.output)
        wider.training = self.training
        return wider

    def begin(self, batch: int) -> State:
        """The state of `batch` sequences that have not begun."""
        return self.core.begin(batch)

    def trace(self, inputs: Shaped[Tensor, "T B *P"], state: State) -> tuple[Trace, State]:
        """The levels of the core over inputs [T, B], T >= 1, and the state after them."""
        if not inputs.shape[0]:
            raise ValueError(f"inputs of shape {list(inputs.shape)}: a window must have one step or more")
        vectors = self.encoder(inputs)
        heard = (self.output.untempered,) if self.core.hears else ()
        trace, state = self.core(vectors, state, *heard)
        return trace._replace(inputs=inputs), state

    def log_prob(
        self, inputs: Shaped[Tensor, "T B *P"], targets: Shaped[Tensor, "T B *Q"], state: State
    ) -> tuple[Float[Tensor, "T B"], State]:
        """Log-probability [T, B] (nats) of targets [T, B], T >= 1, each given the inputs up to its position."""
        trace, state = self.trace(inputs, state)
        return self.output.log_prob(trace, targets), state

    def log_probs(self, inputs: Int[Tensor, "T B"], state: State) -> tuple[Float[Tensor, "T B V"], State]:
        """Log-probabilities [T, B, V] of the symbol that follows each position of inputs [T, B], T >= 1."""
        trace, state = self.trace(inputs, state)
        return self.output.log_probs(trace), state

    def step(self, symbols: Int[Tensor, " B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        """Read one symbol per sequence, [B]; return the log-probabilities [B, V] of the next, and the new state."""
        log_probs, state = self.log_probs(symbols.unsqueeze(0), state)
        return log_probs.squeeze(0), state

    def sample(
        self,
        frames: Shaped[Tensor, "T B P"],
        state: State,
        temperature: float = 1.0,
        generator: Generator | None = None,
    ) -> tuple[Float[Tensor, "T B P"], State]:
        """Frames [T, B, P] drawn to follow each of the frames [T, B, P], and the state after them; for music."""
        trace, state = self.trace(frames, state)
        return self.output.sample(trace, temperature, generator), state

    def initialise(self, rules: config.Initialisation) -> None:
        self.encoder.initialise(rules)
        self.core.initialise(rules)
        self.output.initialise(rules, tied=list(self.encoder.parameters()))

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device
