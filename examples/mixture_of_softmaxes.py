"""The softmax bottleneck (Yang, Dai, Salakhutdinov & Cohen 2018), measured: which outputs break it, at what price.

    python examples/mixture_of_softmaxes.py            # a minute
    python examples/mixture_of_softmaxes.py --tiny     # a few seconds

A softmax over V symbols of vectors of width D gives log-probabilities whose matrix, contexts by symbols, has a rank of
at most D + 2: the vectors, the biases and the normaliser. Words follow a table here that was drawn at random, of which
every row is another distribution: the matrix of the text itself has the full rank V. A mixture of softmaxes and the
sigsoftmax (Kanai, Fujiwara, Yamanaka & Adachi 2018) have no such limit. With three seeds the ranks are 6, 39 to 43
(sigsoftmax) and 50 to 60 (mixture); the perplexities, 32.5, 31.7 and 31.8, differ by less than the seeds do.
"""

import argparse
import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import elman
from elman import nn as enn
from elman.nn import penalties

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="little text and two epochs")
parser.add_argument("--width", type=int, default=4, help="D")
parser.add_argument("--seed", type=int, default=1, help="of the text and the networks")
options = parser.parse_args()

V, D = 64, options.width
LENGTH, EPOCHS = (6_000, 2) if options.tiny else (60_000, 16)

# The text: every word depends on the one before, by a table [V, V].

draw = torch.Generator().manual_seed(options.seed)
table = (2 * torch.randn(V, V, generator=draw)).softmax(-1)
ids = [0]
for _ in range(LENGTH):
    ids.append(int(torch.multinomial(table[ids[-1]], 1, generator=draw)))
text = torch.tensor(ids)
train, valid = text[: -LENGTH // 10], text[-LENGTH // 10 :]
stationary = torch.linalg.matrix_power(table, 100)[0]
least = math.exp(float(stationary @ torch.special.entr(table).sum(-1)))
print(f"the least possible perplexity is {least:.2f}; a table of rank {V}, read through {D} numbers")


class Words(torch.nn.Module):
    """Word vectors, an LSTM, and an output that reads D numbers."""

    def __init__(self, output: Callable[[], enn.Output]) -> None:
        super().__init__()
        self.encoder = enn.Embedding(V, 64)
        self.core = enn.LSTM(64, [64, D])
        self.output = output()

    def forward(self, inputs: Tensor, state: enn.State | None = None, levels: bool = False) -> tuple[Tensor, enn.State]:
        """Hidden states [T, B, D], or all levels, of inputs [T, B], and the state after them."""
        return self.core(self.encoder(inputs), state, levels=levels)


outputs = {
    "softmax": partial(enn.Softmax, D, V),
    "sigsoftmax": partial(enn.Sigsoftmax, D, V),
    "mixture of 8 softmaxes": partial(enn.MixtureOfSoftmaxes, D, V, components=8, width=D),
}
for name, output in outputs.items():
    torch.manual_seed(options.seed)  # vectors and LSTM begin alike in all three
    model = Words(output)
    mixed = isinstance(model.output, enn.MixtureOfSoftmaxes)
    evenly = [partial(penalties.balance, model.output, weight=0.001)] if mixed else []
    history = elman.fit(
        model,
        train,
        valid,
        optimiser=torch.optim.Adam(model.parameters(), 1e-2),
        schedule=lambda done: 1 - 0.95 * done,
        epochs=EPOCHS,
        bptt=20,
        clip=1.0,
        penalties=evenly,
    )
    with torch.no_grad():
        hidden, _ = model(valid[:500].unsqueeze(1))
        singular = torch.linalg.svdvals(model.output.log_probs(hidden)[:, 0].double())
    rank = int((singular > 1e-5 * singular[0]).sum())
    size = sum(parameter.numel() for parameter in model.output.parameters())
    print(f"{name}: {size:,} parameters, validation perplexity {history.best.perplexity:.2f}, rank {rank}")
