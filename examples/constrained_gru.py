"""A GRU whose dynamics cannot explode (Kanai, Fujiwara & Iwamura 2017): training with and without a spectral bound.

    python examples/constrained_gru.py            # two minutes
    python examples/constrained_gru.py --tiny     # a few seconds
    python examples/constrained_gru.py --torch    # torch.nn.GRU in the place of elman.nn.GRU

At h = 0, without inputs and biases, the Jacobian of a GRU is W_hh / 4 + I / 2, where W_hh belongs to its candidate
state. With sigma_1(W_hh) <= 2 - delta its spectral radius is below 1, whatever the training does: the state is
forgotten, and gradients do not explode at long windows and high rates. The projection follows every step of any
optimiser.

The third network has no projection: its recurrent matrices are products of reflections and of singular values, which
stay within 1 - r and 1 + r (Zhang, Lei & Dhillon 2018), so that nothing is forgotten fast either. The fourth has a
penalty in the place of a bound: the norm of the state is to stay what it was (Krueger & Memisevic 2016).
"""

import argparse
import time
from functools import partial
from pydoc_data.topics import topics

import torch
from torch import Tensor
from torch.nn.utils import parametrize

import elman
from elman import nn as enn
from elman.nn.penalties import norm_stabiliser

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="a small model and little text")
parser.add_argument("--torch", action="store_true", help="constrain torch.nn.GRU")
parser.add_argument("--delta", type=float, default=0.2)
parser.add_argument("--radius", type=float, default=0.1, help="r")
parser.add_argument("--weight", type=float, default=1.0, help="of the norm stabiliser")
parser.add_argument("--rate", type=float, default=1e-2, help="of Adam")
parser.add_argument("--clip", type=float, default=None, help="the largest norm of a gradient; by default none")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()

SIZE, EPOCHS, LENGTH = (32, 2, 20_000) if options.tiny else (128, 6, 200_000)

# The text: the characters of the help texts that come with Python.

text = "".join(topics.values())[:LENGTH]
alphabet = sorted(set(text))
ids = torch.tensor([alphabet.index(mark) for mark in text])
train, valid = ids[: -len(ids) // 10], ids[-len(ids) // 10 :]


class Characters(torch.nn.Module):
    """Vectors of characters, a GRU and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = enn.Embedding(len(alphabet), SIZE)
        self.core = (torch.nn.GRU if options.torch else enn.GRU)(SIZE, SIZE)
        self.output = enn.Softmax(SIZE, len(alphabet))

    def forward(self, inputs: Tensor, state: enn.State | None = None, levels: bool = False) -> tuple[Tensor, enn.State]:
        """Hidden states [T, B, H] of inputs [T, B], all that softmax and penalty read, and the state after them."""
        return self.core(self.encoder(inputs), state)


WAYS = ("without a bound", f"sigma_1 <= {2 - options.delta:g}", f"singular values within {options.radius:g} of 1")
for name in (*WAYS, "norm stabiliser"):
    torch.manual_seed(options.seed)
    began, model = time.process_time(), Characters()
    bound = enn.SpectralBound(model, options.delta) if name.startswith("sigma_1") else None
    if name.startswith("singular"):
        enn.svd_weight(model.core, "weight_hh_l0", options.radius)
    try:
        history = elman.fit(
            model,
            train,
            valid,
            optimiser=torch.optim.Adam(model.parameters(), options.rate),
            epochs=EPOCHS,
            bptt=100,
            clip=options.clip,
            penalties=[partial(norm_stabiliser, weight=options.weight)] if name.startswith("norm") else (),
            bound=bound,
        )
        outcome = f"validation perplexity {history.best.perplexity:.3f} per character"
    except elman.UserError as error:
        outcome = str(error)
    seconds = time.process_time() - began
    if parametrize.is_parametrized(model.core):
        parametrize.remove_parametrizations(model.core, "weight_hh_l0")
    bound = enn.SpectralBound(model, options.delta)  # measures all four alike
    (norm,), (radius,) = bound.norms().values(), bound.radii().values()
    spread = f"sigma_1 {norm:.3f}, spectral radius of the Jacobian {radius:.3f}"
    print(f"{name}: {outcome}; {spread}; {seconds:.0f} s of processor time", flush=True)
