"""A network that writes by hand: a mixture for the moves of a pen, and a window that slides over the text.

    python examples/handwriting.py            # six minutes on one thread
    python examples/handwriting.py --tiny     # a few seconds

Graves 2013, Generating sequences with recurrent neural networks, section 5. A line is a sequence of points: how far the
pen moves, and whether it is lifted afterwards. The hand is a vector font of Hershey's, with a slant, a width and a
height drawn for every line and a tremble at every point; the words of the held-out lines are not in the training lines.
Three models of a point: one normal distribution; a mixture, given the points before; and, by the window, the text too.
"""

import argparse
import random
import re
import time
from pathlib import Path
from pydoc_data.topics import topics

import torch
from HersheyFonts import HersheyFonts
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.distributions import Bernoulli, MultivariateNormal

from elman import nn as enn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--picture", type=Path, help="a PNG file: lines that the network wrote, and where its window was")
parser.add_argument("--tiny", action="store_true", help="a small network, single words and few updates")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
UPDATES, SIZE, LINES, WORDS = (45, 24, 12, 1) if options.tiny else (500, 128, 200, 2)
draw, noise = random.Random(options.seed), torch.Generator().manual_seed(options.seed)

# Lines of two words, and their points [T, 3]: moves (x, y) of deviations about 1, and 1 where the pen is lifted.

LETTERS = " abcdefghijklmnopqrstuvwxyz"
font = HersheyFonts()
font.load_default_font("rowmans")
words = sorted(set(re.findall(r"\b[a-z]{2,5}\b", "\n".join(topics.values()).lower())))
draw.shuffle(words)


def written(text: str) -> tuple[Tensor, Tensor]:
    """The points of a text in a hand drawn for it, and for each point the letter [T] that it belongs to."""
    slant, width, height = draw.uniform(-0.4, 0.4), draw.uniform(0.8, 1.2), draw.uniform(0.8, 1.2)
    places, lifts, letters, left = [(0.0, 9.0)], [], [], 0.0
    for number, letter in enumerate(text):
        for stroke in font.all_glyphs[letter].strokes:
            places += [(left + x - font.all_glyphs[letter].left_offset, y) for x, y in stroke]
            lifts += [0.0] * (len(stroke) - 1) + [1.0]
            letters += [number] * len(stroke)
        left += font.all_glyphs[letter].char_width
    x, y = (torch.tensor(places) + 0.3 * torch.randn(len(places), 2, generator=noise)).unbind(1)
    moves = torch.stack([width * (x - slant * (y - 9)), height * y], 1).diff(dim=0) / 6
    return torch.cat([moves, torch.tensor(lifts).unsqueeze(1)], 1), torch.tensor(letters)


def encoded(text: str) -> Tensor:
    """One-hot letters [U, 27] with a blank after the last one, where the line ends."""
    return nn.functional.one_hot(torch.tensor([LETTERS.index(one) for one in text + " "]), len(LETTERS)).float()


def batch(words: list[str], number: int) -> tuple[Tensor, ...]:
    """Texts [B, U, 27], their points [T, B, 3], the letter [T, B] of each point, and which points there are [T, B]."""
    texts, pad = [" ".join(draw.sample(words, WORDS)) for _ in range(number)], nn.utils.rnn.pad_sequence
    points, letters = zip(*map(written, texts), strict=True)
    return pad([*map(encoded, texts)], True), pad(points), pad(letters), pad([one >= 0 for one in letters])


class Writer(nn.Module):
    """Two layers with the window between them, fed back to the first; the output reads both."""

    def __init__(self, sees_text: bool) -> None:
        super().__init__()
        self.sees_text = sees_text
        self.first, self.second = enn.LSTM(3 + len(LETTERS), SIZE), enn.LSTM(3 + SIZE + len(LETTERS), SIZE)
        self.first.fused = False  # single steps have nothing to gain from the fused kernel
        self.window = enn.SoftWindow(SIZE, 5, pace=0.08)
        self.output = enn.PenMixture(2 * SIZE, 10)

    def step(self, point: Tensor, text: Tensor, state: tuple) -> tuple[Tensor, Tensor, Tensor, tuple]:
        """The first layer and the window after a point [1, B, 3]: h [1, B, D], read [1, B, 27], weights [1, B, U]."""
        cell, read, place = state
        h, cell = self.first(torch.cat([point, read], -1), cell)
        read, weights, place = self.window(h.transpose(0, 1), text, place)
        read = read.transpose(0, 1) * self.sees_text
        return h, read, weights.transpose(0, 1), (cell, read, place[:, -1])

    def forward(self, points: Tensor, text: Tensor) -> tuple[Tensor, Tensor]:
        """What the output reads [T, B, 2 D] before each point, and the weights [T, B, U] of the window."""
        before = torch.cat([torch.zeros_like(points[:1]), points[:-1]])
        state, found = (None, text.new_zeros(1, len(text), len(LETTERS)), None), []
        for point in before.split(1):
            *one, state = self.step(point, text, state)
            found.append(one)
        h, read, weights = map(torch.cat, zip(*found, strict=True))
        return torch.cat([h, self.second(torch.cat([before, h, read], -1))[0]], -1), weights

    @torch.no_grad()
    def write(self, text: str, temperature: float) -> tuple[Tensor, Tensor]:
        """Points [T, 3] and weights [T, U] of a text, until the window is at its end and the pen is lifted."""
        state, point, top, found = (None, torch.zeros(1, 1, len(LETTERS)), None), torch.zeros(1, 1, 3), None, []
        while len(found) < 30 * len(text):
            h, read, weights, state = self.step(point, encoded(text).unsqueeze(0), state)
            if point[0, 0, 2] and weights.argmax() == len(text):
                break
            upper, top = self.second(torch.cat([point, h, read], -1), top)
            point = self.output.sample(torch.cat([h, upper], -1), temperature, noise)
            found.append((point[0], weights[0]))
        return tuple(torch.cat(part) for part in zip(*found, strict=True))


_, points, _, there = batch(words[100:], 500)
normal, lifts = MultivariateNormal(points[there][:, :2].mean(0), points[there][:, :2].t().cov()), points[there][:, 2]
texts, points, letters, there = batch(words[:100], LINES)
chance = normal.log_prob(points[..., :2]) + Bernoulli(lifts.mean()).log_prob(points[..., 2])
results = {"one normal distribution": -chance[there].mean().item()}
print(*results, f"{-chance[there].mean():.3f} nats per point, {there.sum():,} of them", sep=": ")
for name, sees_text in (("mixture", False), ("mixture and window", True)):
    torch.manual_seed(options.seed)
    writer, began = Writer(sees_text), time.process_time()
    optimiser = torch.optim.Adam(writer.parameters(), 5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, UPDATES, pct_start=0.1)
    for _ in range(UPDATES):
        lines, moved, _, counts = batch(words[100:], 32)
        loss = writer.output.nll(writer(moved, lines)[0], moved, weight=counts)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(writer.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        (seen, weights), (other, _) = writer(points, texts), writer(points, texts.roll(1, 0))
        results[name], misled = (writer.output.nll(one, points, weight=there).item() for one in (seen, other))
        on = (weights.argmax(2) == letters)[there].float().mean()
    looks = f", given another text {misled:.3f}; window on the letter {on:.3f}" if sees_text else ""
    print(f"{name}: {results[name]:.3f}{looks}; {time.process_time() - began:.0f} s of processor time", flush=True)

if options.picture:
    phrases, figure = ("elman", "long short", "term memory"), Figure((9, 6), layout="constrained")
    for text, (left, right) in zip(phrases, figure.subplots(len(phrases), 2), strict=True):
        points, weights = writer.write(text, 0.2)
        x, y = points[:, :2].cumsum(0).unbind(1)
        for stroke in torch.arange(len(x)).tensor_split(points[:, 2].nonzero()[:, 0] + 1):
            left.plot(x[stroke], -y[stroke], "k")
        left.set_aspect("equal", "datalim")
        right.imshow(weights.t(), aspect="auto", cmap="Greys")
        right.set_yticks(range(len(text) + 1), [*text, "end"])
    figure.savefig(options.picture)
