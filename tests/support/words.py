"""A small model of words from the parts of elman.nn, beside the same one of a recipe."""

import torch

from elman import config
from elman import nn as enn
from elman.config.parts import convert
from elman.network.build import build_model

V, E, WIDTHS = 11, 6, (8, 6)


class Words(torch.nn.Module):
    def __init__(self, output=None, recurrence=enn.LSTM, **dropouts):
        super().__init__()
        self.encoder = enn.Embedding(V, E)
        self.core = recurrence(E, [*WIDTHS], **dropouts)
        self.output = enn.Softmax(WIDTHS[-1], V) if output is None else output(WIDTHS[-1], V)

    def forward(self, inputs, state=None, levels=False):
        return self.core(self.encoder(inputs), state, levels=levels)


def mixture(width, vocabulary):
    return enn.MixtureOfSoftmaxes(width, vocabulary, components=3, width=5)


def pair(cell="lstm", components=0, dtype=torch.float64):
    """A model of a recipe, and one of parts that has its weights."""
    contexts = {"kind": "mixture", "heads": {"2": components}, "size": 5} if components else {"kind": "single"}
    record = {
        "encoder": {"kind": "lookup", "size": E},
        "core": {"kind": "stack", "sizes": list(WIDTHS), "cell": {"kind": cell}},
        "output": {"contexts": contexts},
    }
    known = build_model(convert(record, config.Model), V).to(dtype)
    with torch.no_grad():
        for parameter in known.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    recurrence = {"lstm": enn.LSTM, "gru": enn.GRU, "elman": enn.Elman}[cell]
    made = Words(mixture if components else None, recurrence).to(dtype)
    made.load_state_dict(arrays_of(known))
    return known, made


def arrays_of(known):
    """The parameters of a recipe's model by the names that they have in parts."""
    core = {f"core.{n}_l{i}": one for i, layer in enumerate(known.core.layers) for n, one in layer.named_parameters()}
    output = {f"output.{name}": one for name, one in enn.Output(known.output, V).named_parameters()}
    return {"encoder.weight": known.encoder.weight, **core, **output}


def text(size, seed=0):
    """Symbols that depend on the one before."""
    draw = torch.Generator().manual_seed(seed)
    table = torch.rand(V, V, generator=torch.Generator().manual_seed(7)).pow(6)
    ids = [0]
    for _ in range(size - 1):
        ids.append(int(torch.multinomial(table[ids[-1]], 1, generator=draw)))
    return torch.tensor(ids)
