"""Mathematical identities: a network over the trees of formulas, and one over their symbols, learn which are equal.

    python examples/identities.py             # a minute of one core
    python examples/identities.py --tiny      # a few seconds

After Zaremba, Kurach & Fergus 2014, Learning to discover efficient mathematical identities, NIPS: equal formulas are of
one class, and a recursive network makes the vector of a formula from the vectors of its parts, from which a softmax
names the class:

    v(f o g) = tanh(W_o [v(f); v(g)] + b_o)

Here formulas have the variables a, b and c with not, and, or; the class is the truth table. Of formulas larger than any
of training the recursive network names 91 to 96 % right (three seeds), and an LSTM over the symbols 39 to 44 %. Two
different formulas with the nearest vectors are an identity that the network has found.
"""

import argparse
import collections
import random
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from elman import nn as enn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="few updates")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
UPDATES, H = (120, 32) if options.tiny else (2000, 64)
torch.manual_seed(options.seed)
draw = random.Random(options.seed)

# A formula is "a", ("not", f), ("and", f, g) or ("or", f, g); a truth table is a number of eight bits.

Formula: TypeAlias = str | tuple  # type: ignore[type-arg]
TABLES = {"a": 0b11110000, "b": 0b11001100, "c": 0b10101010}
SYMBOLS = [*TABLES, "not", "and", "or"]


def drawn(leaves: int) -> Formula:
    """A formula with this number of variables."""
    at = draw.randint(1, max(1, leaves - 1))
    whole = draw.choice("abc") if leaves == 1 else (draw.choice(["and", "or"]), drawn(at), drawn(leaves - at))
    return ("not", whole) if draw.random() < 0.25 else whole


def table(f: Formula) -> int:
    """The truth table."""
    if isinstance(f, str):
        return TABLES[f]
    first, last = table(f[1]), table(f[-1])
    return {"not": 255 - first, "and": first & last, "or": first | last}[f[0]]


def symbols(f: Formula) -> list[str]:
    """The formula in prefix order."""
    return [f] if isinstance(f, str) else [f[0], *(symbol for part in f[1:] for symbol in symbols(part))]


def written(f: Formula) -> str:
    """The formula as it is read."""
    if isinstance(f, str):
        return f
    return f"not {written(f[1])}" if f[0] == "not" else f"({written(f[1])} {f[0]} {written(f[2])})"


def different(count: int, least: int, most: int) -> list[Formula]:
    """Drawn formulas, each once."""
    found: dict[Formula, None] = {}
    while len(found) < count:
        found[drawn(draw.randint(least, most))] = None
    return list(found)


class OverTrees(torch.nn.Module):
    """The vector of a formula from the vectors of its parts, all formulas of one height at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.leaves = enn.Embedding(3, H)
        self.of = torch.nn.ModuleDict(
            {"not": torch.nn.Linear(H, H)} | {o: torch.nn.Linear(2 * H, H) for o in ("and", "or")}
        )

    def forward(self, formulas: list[Formula]) -> Tensor:
        """Vectors [n, H] of n formulas."""
        vectors = dict(zip("abc", self.leaves(torch.arange(3)), strict=True))
        heights: dict[Formula, int] = dict.fromkeys("abc", 0)
        levels = collections.defaultdict(list)

        def enter(f: Formula) -> int:
            if f not in heights:
                heights[f] = 1 + max(map(enter, f[1:]))
                levels[heights[f], f[0]].append(f)
            return heights[f]

        for f in formulas:
            enter(f)
        for (_, o), group in sorted(levels.items()):
            parts = torch.stack([torch.cat([vectors[part] for part in f[1:]]) for f in group])
            vectors.update(zip(group, self.of[o](parts).tanh(), strict=True))
        return torch.stack([vectors[f] for f in formulas])


class OverSymbols(torch.nn.Module):
    """The last state of an LSTM over the symbols of a formula."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.core = enn.Embedding(len(SYMBOLS), H), enn.LSTM(H, H)

    def forward(self, formulas: list[Formula]) -> Tensor:
        """Vectors [n, H] of n formulas."""
        ids = [torch.tensor([*map(SYMBOLS.index, symbols(f))]) for f in formulas]
        return self.core(pack_sequence([self.encoder(one) for one in ids], enforce_sorted=False))[1][0][-1]


train, test = different(6000, 1, 5), different(500, 6, 7)
classes = [one for one, count in collections.Counter(map(table, train)).most_common() if count >= 20]
train, test = ([f for f in formulas if table(f) in classes] for formulas in (train, test))
common = sum(table(f) == classes[0] for f in test) / len(test)
print(f"{len(train)} formulas of {len(classes)} classes; the commonest has {100 * common:.1f} % of the test")
rates = {}
for name, network in {"over symbols": OverSymbols(), "over trees": OverTrees()}.items():
    output = torch.nn.Linear(H, len(classes))
    optimiser = torch.optim.Adam([*network.parameters(), *output.parameters()])
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, total_steps=UPDATES)
    for _ in range(UPDATES):
        chosen = draw.choices(train, k=50)
        true = torch.tensor([classes.index(table(f)) for f in chosen])
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(output(network(chosen)), true).backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        vectors = network(test)
    found = [classes[place] == table(f) for place, f in zip(output(vectors).argmax(-1).tolist(), test, strict=True)]
    rates[name] = sum(found) / len(found)
    print(f"{name}: {100 * rates[name]:.1f} % of larger formulas have the right class", flush=True)
small = [f for f in train if len(symbols(f)) < 8]
with torch.no_grad():
    distances = torch.cdist(network(small), network(small)) + torch.eye(len(small)) * 1e9
near = [divmod(place, len(small)) for place in distances.flatten().topk(20, largest=False).indices.tolist()][::2]
right = sum(table(small[f]) == table(small[g]) for f, g in near)
print(f"{right} of the {len(near)} nearest pairs are identities, among them")
print("\n".join(f"    {written(small[f])} = {written(small[g])}" for f, g in near[:5]))
