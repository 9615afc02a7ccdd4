"""Translation by Bayes' rule: a model of each direction and a model of the target language.

    python examples/noisy_channel.py            # minutes on one thread
    python examples/noisy_channel.py --tiny     # seconds, in which little is learnt

For a source x the target y with the greatest p(y | x) is sought, which is proportional to p(x | y) p(y): the noisy
channel (Brown et al. 1990, A statistical approach to machine translation; with networks Yu, Blunsom, Dyer, Grefenstette
& Kocisky 2017, The neural noisy channel, ICLR). p(y) learns from targets alone, of which there are more than pairs.

Both languages are made up. Words of the target follow each other as in a Markov chain; a source is its target in
reverse, where pairs of words become one, so that only the neighbours of a word decide which of the two it was.
Candidates are drawn from p(y | x), and each combination of models takes the best of them: right words, means of 3
seeds, 88.5 % by p(y | x), 90.2 % by p(x | y), 95.6 % by p(x | y) p(y) and by all three, 97.2 % with the best candidate.
"""

import argparse

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from elman import nn as enn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="short trainings and one seed")
parser.add_argument("--pairs", type=int, default=500)
parser.add_argument("--targets", type=int, default=5000, help="sentences of the target language alone")
parser.add_argument("--seeds", type=int, default=3)
options = parser.parse_args()

torch.set_num_threads(1)
LENGTH, WORDS, SIZE = 8, 40, 64
STEPS, CANDIDATES, TESTED = (60, 5, 50) if options.tiny else (600, 30, 200)


class Languages:
    """A Markov chain of target words; word k becomes k // 2 in the source."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.moves = self.draw.dirichlet(np.full(WORDS, 0.05), WORDS)

    def targets(self, count: int) -> Tensor:
        """Sentences [T, B]."""
        words = np.zeros((LENGTH, count), dtype=np.int64)
        for b in range(count):
            words[0, b] = self.draw.integers(WORDS)
            for t in range(1, LENGTH):
                words[t, b] = self.draw.choice(WORDS, p=self.moves[words[t - 1, b]])
        return torch.tensor(words)


class Model(torch.nn.Module):
    """p(y | x) of an LSTM that attends to an LSTM in both directions over x, or p(y) where there is no x."""

    def __init__(self, *, reads: bool) -> None:
        super().__init__()
        self.words, self.core = enn.Embedding(WORDS + 1, SIZE), enn.LSTM(SIZE, SIZE)
        self.source = enn.Embedding(WORDS, SIZE) if reads else None
        self.reader = enn.LSTM(SIZE, SIZE // 2, bidirectional=True)
        self.attention = enn.AdditiveAttention(SIZE, SIZE, SIZE)
        self.last = torch.nn.Linear(2 * SIZE, WORDS)

    def scores(self, y: Tensor, x: Tensor | None) -> Tensor:
        """Of the words at each step [T, B, V]; before the first stands a mark, and the last of y is not read."""
        start = torch.full_like(y[:1], WORDS)
        h = self.core(self.words(torch.cat([start, y[:-1]])))[0].transpose(0, 1)
        read = torch.zeros_like(h)
        if self.source is not None:
            read = self.attention(h, self.reader(self.source(x))[0].transpose(0, 1))[0]
        return self.last(torch.cat([h, read], dim=-1)).transpose(0, 1)

    def log_prob(self, y: Tensor, x: Tensor | None = None) -> Tensor:
        """Log p(y | x), [B]."""
        scores = self.scores(y, x)
        return -cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="none").view(y.shape).sum(0)

    @torch.no_grad()
    def sample(self, x: Tensor) -> Tensor:
        """A y for each x."""
        y = torch.zeros(0, x.shape[1], dtype=torch.int64)
        for _ in range(LENGTH):
            scores = self.scores(torch.cat([y, y.new_zeros(1, x.shape[1])]), x)[-1]
            y = torch.cat([y, torch.multinomial(scores.softmax(-1), 1).t()])
        return y


def trained(y: Tensor, x: Tensor | None = None) -> Model:
    """A model after some steps by Adam; a tenth is kept apart, and of every 50 steps the best on it is taken."""
    model = Model(reads=x is not None)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    kept, best, weights = y.shape[1] // 10, -torch.inf, {}
    for step in range(STEPS):
        columns = torch.randint(kept, y.shape[1], (32,))
        loss = -model.log_prob(y[:, columns], None if x is None else x[:, columns]).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 49:
            with torch.no_grad():
                found = model.log_prob(y[:, :kept], None if x is None else x[:, :kept]).mean().item()
            if found > best:
                best, weights = found, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(weights)
    return model


results: dict[str, list[float]] = {}
for seed in range(1 if options.tiny else options.seeds):
    torch.manual_seed(seed)
    languages = Languages(seed)
    y, more, test = (languages.targets(count) for count in (options.pairs, options.targets, TESTED))
    x, given = y.flip(0) // 2, test.flip(0) // 2
    direct, channel, language = trained(y, x), trained(x, y), trained(more)
    found = torch.stack([direct.sample(given) for _ in range(CANDIDATES)])
    with torch.no_grad():
        forward = torch.stack([direct.log_prob(each, given) for each in found])
        back = torch.stack([channel.log_prob(given, each) for each in found])
        prior = torch.stack([language.log_prob(each) for each in found])
    ways = {"p(y | x)": forward, "p(x | y)": back, "p(x | y) p(y)": back + prior}
    ways |= {"p(y | x) p(y)": forward + prior, "all three": forward + back + prior}
    for name, totals in ways.items():
        taken = found[totals.argmax(0), :, torch.arange(TESTED)].t()
        results.setdefault(name, []).append((taken == test).double().mean().item())
    results.setdefault("the best candidate", []).append((found == test).double().mean(1).max(0)[0].mean().item())
for name, shares in results.items():
    print(f"{name}: {np.mean(shares):.1%} of the words", [f"{one:.1%}" for one in shares])
