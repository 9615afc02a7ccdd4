"""A recurrence of one's own: its equations, a layer of it, a training beside the LSTM, and a program without elman.

    python examples/own_cell.py            # half a minute
    python examples/own_cell.py --tiny     # a few seconds

The cell is the independently recurrent network (Li, Li, Cook, Zhu & Gao 2018): every unit hears itself alone,

    h' = relu(W x + u * h + b)

The task is adding (Hochreiter & Schmidhuber 1997): of a sequence of numbers two are marked, and their sum is
asked for at the end. Who always answers 1 has an error of 1/6.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_model, save_model
from torch import Tensor

from elman import nn as enn
from elman.network.cells.cell import Array, Driven, LayerState, Weights

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="short sequences and few steps")
parser.add_argument("--out", type=Path, help="a folder for the weights and the program; without it they are not kept")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()


# The equations: a record, whose fields are arguments of the layer, and one step. `weight_ih` [H, I] and the biases [H]
# come with the gate "n"; `arrays` lists what else is learnt. `Driven` forms W x + b for all steps at once.


class IndependentCell(Driven, frozen=True, tag="own-independent"):
    """h' = relu(W x + u * h + b), with one recurrent weight u per unit, which begins between 0 and `largest`."""

    largest: float = 1.0
    gates = ("n",)
    masks = None  # recurrent dropout masks nothing
    has_matrices = False  # no recurrent matrix, `u` stands in its place

    def arrays(self, inputs: int, size: int) -> dict[str, Array]:
        """The recurrent weights u [H]."""
        return {"u": Array((size,), lambda u: u.uniform_(0, self.largest), recurrent=True)}

    def driven(self, w: Weights, drive: Tensor, state: LayerState) -> LayerState:
        """The state after one step with the drive W x + b [B, H]."""
        (h,) = state
        return (torch.relu(drive + w.u * h + w.bias_hh),)


# The layer: everything of torch.nn.LSTM, packed sequences and both directions included.


class Independent(enn.Recurrent, cell=IndependentCell):
    """The independently recurrent network (Li et al. 2018)."""


layer = Independent(2, [8, 4], bidirectional=True, largest=0.9)
outputs, state = layer(torch.randn(5, 3, 2))
print(f"two layers in both directions give outputs {list(outputs.shape)}")

# It is tested like any function: its derivatives by differences.

exact = Independent(2, 3, dtype=torch.float64)
xs = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(lambda xs: exact(xs)[0], xs)


# A training, beside the LSTM with as many units.

STEPS, TRAININGS = (10, 40) if options.tiny else (50, 600)


def sequences(count: int) -> tuple[Tensor, Tensor]:
    """Numbers and marks [T, B, 2], and the sums [B]."""
    numbers, marks = torch.rand(STEPS, count), torch.zeros(STEPS, count)
    for half in (slice(0, STEPS // 2), slice(STEPS // 2, STEPS)):
        marks[half].scatter_(0, torch.randint(STEPS // 2, (1, count)), 1.0)
    return torch.stack([numbers, marks], dim=-1), (numbers * marks).sum(0)


class Adding(torch.nn.Module):
    """A recurrent layer, and a number read from its last output."""

    def __init__(self, recurrence: type[enn.Recurrent]) -> None:
        super().__init__()
        self.core = recurrence(2, [32, 32])
        self.last = torch.nn.Linear(32, 1)

    def forward(self, xs: Tensor) -> Tensor:
        """Sums [B] of sequences [T, B, 2]."""
        outputs, _ = self.core(xs)
        return self.last(outputs[-1]).squeeze(-1)


errors, models = {}, {}
for recurrence in (Independent, enn.LSTM):
    torch.manual_seed(options.seed)
    model = models[recurrence.__name__] = Adding(recurrence)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(TRAININGS):
        xs, sums = sequences(50)
        loss = (model(xs) - sums).square().mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    xs, sums = sequences(1000)
    with torch.no_grad():
        errors[recurrence.__name__] = (model(xs) - sums).square().mean().item()
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{recurrence.__name__}: {size:,} parameters, squared error {errors[recurrence.__name__]:.4f}")


# Its weights in a file, and a program of torch, which runs without elman.

with tempfile.TemporaryDirectory() as temporary:
    folder = options.out or Path(temporary)
    folder.mkdir(parents=True, exist_ok=True)
    model = models["Independent"].eval()
    save_model(model, str(folder / "adding.safetensors"))
    again = Adding(Independent)
    load_model(again, str(folder / "adding.safetensors"))
    columns = {1: torch.export.Dim("columns")}
    torch.export.save(torch.export.export(model, (sequences(2)[0],), dynamic_shapes=(columns,)), folder / "adding.pt2")
    program = torch.export.load(folder / "adding.pt2").module()
    torch.testing.assert_close(again(xs), model(xs))
    torch.testing.assert_close(program(xs), model(xs), rtol=1e-4, atol=1e-4)
    print("saved, and exported for", STEPS, "steps of any number of sequences")
