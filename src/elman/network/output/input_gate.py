"""The input-to-output gate: the word just read decides which symbols, or which units, the output layer hears."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding

from elman import config
from elman.errors import UserError
from elman.network import dropout
from elman.network.cores.core import RecurrentCore, Trace
from elman.network.encoders.encoder import TokenEncoder
from elman.network.encoders.lookup import LookupEncoder
from elman.network.fast.matmul import linear
from elman.network.initialisation import fill


@final
class InputGate(nn.Module):
    """A gate that reads x_t, the vector of the word just read (Takase, Suzuki & Nagata 2017).

        on the logits    z_t = sigm(W_g x_t + b_g) * (W h_t + b)     W_g [V, E], parameters of the choice (`flat.py`)
        on the level     h'_t = sigm(W_g x_t + b_g) * h_t            W_g [D, E], h_t the last level of the core

    The first is the form of the paper's experiments: the sizes of its tables follow from it, with word vectors of the
    gate's own of 300 numbers. x_t is such a vector, or level 0 of the trace, the encoded input. Dropout draws a mask
    for every element. The gate reads no state, so windows may be cut anywhere.
    """

    def __init__(self, record: config.InputGate, num_words: int, input_size: int, level_size: int) -> None:
        super().__init__()
        self.rate = record.dropout
        width = record.size or input_size
        self.weight = None if record.size is None else nn.Parameter(torch.empty(num_words, width))
        self.linear = nn.Linear(width, level_size) if record.on == "level" else None

    def vectors(self, trace: Trace) -> Float[Tensor, "T B E"]:
        found = trace.levels[0] if self.weight is None else embedding(_symbols(trace), self.weight)
        return dropout.elementwise(found, self.rate if self.training else 0.0)

    def on_level(self, trace: Trace) -> Trace:
        """The trace with its last level gated, where that is what the gate acts on."""
        if self.linear is None:
            return trace
        gate = linear(self.vectors(trace), self.linear.weight, self.linear.bias).sigmoid()
        return trace._replace(levels=(*trace.levels[:-1], gate * trace.top))

    def beside(self, contexts: Float[Tensor, "T B K D"], trace: Trace) -> Float[Tensor, "T B K F"]:
        """The contexts, each followed by what a gate on the logits reads (F = D + E), else unchanged."""
        if self.linear is not None:
            return contexts
        x = self.vectors(trace).unsqueeze(-2)
        return torch.cat([contexts, x.expand(*contexts.shape[:-1], x.shape[-1])], dim=-1)

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the word vectors; the linear layer is filled with the contexts' layers."""
        if self.weight is not None:
            fill(self.weight, rules.embedding, self.weight.shape[1])


def build_input_gate(gate: config.InputGate, encoder: TokenEncoder, core: RecurrentCore, num_words: int) -> InputGate:
    """The gate of a recipe; raises UserError where it cannot know the word, or the core hears the output."""
    if gate.size is not None and not isinstance(encoder, LookupEncoder):
        raise UserError(
            'model.output.gate.size gives every word a vector, which needs model.encoder.kind = "lookup"; leave it out,'
            " and the gate reads the encoder's vectors"
        )
    if core.hears:
        raise UserError(
            'model.output.gate acts on the output, which model.core.kind = "jordan" hears at every step; set'
            ' model.core.feedback = "target", or leave the gate out'
        )
    return InputGate(gate, num_words, core.dims[0], core.dims[-1])


def train_alone(model: nn.Module) -> None:
    """Freeze every parameter outside the gate."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_of_gate(name))


def is_of_gate(name: str) -> bool:
    return name.startswith(("output.contexts.gate.", "output.choice.gate_"))


def _symbols(trace: Trace) -> Int[Tensor, "T B"]:
    assert trace.inputs is not None, "a gate with word vectors of its own reads the symbols"
    return trace.inputs
