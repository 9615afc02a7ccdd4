"""Captions of images by a network that looks at a part of the image for every word, or is given all of it once.

    python examples/captions.py            # three minutes on one thread; with --hard five
    python examples/captions.py --tiny     # a few seconds

An image shows one to three shapes, which its caption names in reading order: "large red circle left of small blue
square". Convolutions make a grid of vectors, with two coordinates, since the order depends on places. An LSTM begins
from their mean (once: Vinyals et al. 2015, Show and tell); with attention it reads their mean under weights before each
word (soft: Xu et al. 2015, Show, attend and tell, 4.2), or one drawn place, by REINFORCE (hard: section 4.1; half of
the images are still read by the mean, and the reward of a place is the log-probability of the word that follows it).
"""

import argparse
import time
from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from elman import nn as enn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--picture", type=Path, help="a PNG file: an image under the attention of every word")
parser.add_argument("--tiny", action="store_true", help="one shape in every image, and few updates")
parser.add_argument("--hard", action="store_true", help="hard attention too")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()

# Images [B, 3, 32, 32]; captions [T, B] of size, colour and shape of each thing, and relations; places of the grid.
SIZES, SHAPES = ("small", "large"), ("circle", "square", "triangle", "cross")
COLOURS = {"red": (0.9, 0.2, 0.2), "green": (0.2, 0.8, 0.3), "blue": (0.2, 0.4, 0.95), "yellow": (0.95, 0.85, 0.2)}
RELATIONS = ("left of", "above left of", "above", "above right of")  # each is one symbol
WORDS = ("<eos>", *SIZES, *COLOURS, *SHAPES, *RELATIONS)
BEGIN = {part[0]: WORDS.index(part[0]) for part in (SIZES, [*COLOURS], SHAPES, RELATIONS)}
SIDE, CELL, (MOST, UPDATES) = 32, 4, (1, 150) if options.tiny else (3, 1500)
PLACES = torch.stack(torch.meshgrid(*[torch.linspace(-3, 3, SIDE // CELL)] * 2, indexing="xy")).unsqueeze(0)


def batch(number: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images, captions with <eos> at the end and after it, and the pixels [B, n, 32, 32] of each thing."""
    uniform = partial(torch.rand, generator=draw)
    count = torch.randint(1, MOST + 1, (number, 1), generator=draw)
    fields = uniform(number, 9).argsort(1)[:, :MOST].masked_fill(torch.arange(MOST) >= count, 9).sort(1).values
    size, colour, shape = (torch.randint(one, (number, MOST), generator=draw) for one in (2, 4, 4))
    row, column, there = fields // 3, fields % 3, fields < 9
    r = (3.7 + 1.2 * size + 0.2 * uniform(number, MOST))[..., None, None]
    y = torch.arange(SIDE).view(-1, 1) - (row * 10.5 + 4.75 + uniform(number, MOST))[..., None, None]
    x = torch.arange(SIDE) - (column * 10.5 + 4.75 + uniform(number, MOST))[..., None, None]
    far, near, triangle = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs()), x.abs() < (y + r) / 2
    kinds = [x**2 + y**2 < r**2, far < 0.9 * r, triangle & (y < 0.9 * r), (near < r / 3.2) & (far < r)]
    pixels = (
        torch.stack(kinds, -1).take_along_dim(shape[..., None, None, None], -1).squeeze(-1) & there[..., None, None]
    )
    image = torch.full((number, 3, SIDE, SIDE), 0.35)
    for one, paint in enumerate(torch.tensor([*COLOURS.values()])[colour].unbind(1)):
        image = torch.where(pixels[:, one, None], paint[..., None, None], image)
    image += 0.05 * torch.randn(image.shape, generator=draw)
    relation = torch.where(row.diff(dim=1) == 0, 0, 2 - column.diff(dim=1).sign())
    named = torch.stack([BEGIN["small"] + size, BEGIN["red"] + colour, BEGIN["circle"] + shape], -1) * there[..., None]
    related = nn.functional.pad((BEGIN["left of"] + relation) * there[:, 1:], (0, 1))
    return image, torch.cat([named, related.unsqueeze(-1)], -1).flatten(1).t(), pixels


class Captions(nn.Module):
    """Convolutions, an LSTM, and what is between them: the first state, and attention or not."""

    def __init__(self, way: str, size: int = 128, features: int = 64, embedding: int = 32) -> None:
        super().__init__()
        self.way, self.context = way, 0 if way == "once" else features + 2
        layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.Conv2d(24, 48, 4, 2, 1), nn.Conv2d(48, features, 3, 1, 1)]
        norms = [nn.GroupNorm(8, layer.out_channels) for layer in layers]  # without them colours are learnt more slowly
        self.see = nn.Sequential(*(part for pair in zip(layers, norms, strict=True) for part in (*pair, nn.ReLU())))
        self.begin = nn.Linear(features + 2, 2 * size)
        self.attention = enn.AdditiveAttention(size, features + 2, 32)
        self.words = enn.Embedding(len(WORDS), embedding)
        self.core = enn.LSTM(embedding + self.context, size)
        self.core.fused = False  # single steps have nothing to gain from the fused kernel
        self.deep = nn.Linear(size + self.context + embedding, 96)  # eq. 7: state, context and the word before
        self.output = enn.Softmax(96, len(WORDS))

    def forward(self, images: Tensor, captions: Tensor | None = None) -> tuple[Tensor, ...]:
        """What the output reads [T, B, 96], weights [B, T, S], words [T, B], and log-probabilities [T, B] of places."""
        grid = torch.cat([self.see(images), PLACES.expand(len(images), -1, -1, -1)], 1).flatten(2).transpose(1, 2)
        keys = self.attention.keys(grid)
        h, c = self.begin(grid.mean(1)).tanh().unsqueeze(0).chunk(2, -1)
        last, found = torch.zeros(len(images), dtype=torch.int64), []
        drawing = torch.rand(len(images), 1) < (self.way == "hard") * (0.5 if self.training else 1.0)  # else the mean
        for step in range(4 * MOST):
            context, weights = (part.squeeze(1) for part in self.attention(h.transpose(0, 1), grid, keys))
            drawn = weights.detach().multinomial(1) if self.training else weights.argmax(1, keepdim=True)
            context = torch.where(drawing, grid.take_along_dim(drawn.unsqueeze(-1), 1).squeeze(1), context)
            read = torch.cat([self.words(last.unsqueeze(0))[0], context[:, : self.context]], -1)
            out, (h, c) = self.core(read.unsqueeze(0), (h.contiguous(), c.contiguous()))
            seen = self.deep(torch.cat([out[0], read], -1)).tanh()
            last = self.output.log_probs(seen).argmax(-1) if captions is None else captions[step]
            found.append((seen, weights, last, (weights.gather(1, drawn).log() * drawing).squeeze(1)))
        return tuple(torch.stack(part, at) for part, at in zip(zip(*found, strict=True), (0, 1, 0, 0), strict=True))


@torch.no_grad()
def measured(model: Captions) -> tuple[dict[str, float], float, Tensor, Tensor]:
    """Shares of right attributes, and of words whose largest weight is on their shape; weights and words."""
    _, weights, words, _ = model.eval()(held)
    right, said = (one.view(MOST, 4, -1).transpose(0, 1) for one in (words == truth, truth > 0))
    cells = nn.functional.max_pool2d(pixels.float(), CELL).flatten(2)
    on = cells.gather(2, weights.argmax(2).view(-1, MOST, 4)[..., :3])[said[:3].permute(2, 1, 0)].mean().item()
    named = zip(("size", "colour", "shape", "relation"), right, said, strict=True)
    return {name: one[there].float().mean().item() for name, one, there in named if there.any()}, on, weights, words


held, truth, pixels = batch(100 if options.tiny else 1000, torch.Generator().manual_seed(999))
results = {}
for way in ("once", "soft", "hard") if options.hard else ("once", "soft"):
    torch.manual_seed(options.seed)
    draw, began, expected = torch.Generator().manual_seed(options.seed), time.process_time(), torch.zeros(4 * MOST, 1)
    model = Captions(way)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-3, UPDATES, pct_start=0.1)
    for _ in range(UPDATES):
        images, captions, *_ = batch(24 if options.tiny and way != "hard" else 64, draw)
        seen, weights, _, log_drawn = model.train()(images, captions)
        counts = torch.cat([torch.ones(1, captions.shape[1]).bool(), captions[:-1] > 0])  # words, and the first <eos>
        each = model.output.nll(seen, captions, "none", weight=counts)
        loss = each.sum() / counts.sum()
        if way == "hard":
            gain = (-each.detach() - expected) * counts  # over the moving average of the reward at this step
            expected += 0.1 * gain.sum(1, keepdim=True) / counts.sum(1, keepdim=True).clip(1)
            loss = loss - 0.1 * (gain * log_drawn).sum() / counts.sum()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    results[way] = accuracy, on, *_ = measured(model)
    said = ", ".join(f"{attribute} {share:.3f}" for attribute, share in accuracy.items())
    looks = "" if way == "once" else f"; attention on the right shape {on:.3f}"
    print(f"{way}: {said}{looks}; {time.process_time() - began:.0f} s of processor time", flush=True)

if options.picture:
    figure, extent = Figure((5.6 * MOST, 3.4), layout="constrained"), (-0.5, SIDE - 0.5, SIDE - 0.5, -0.5)
    (*_, weights, words), longest = results[way], (truth > 0).sum(0).argsort(descending=True, stable=True)
    for place, axes in enumerate(figure.subplots(2, 4 * MOST).flat):
        row, step = longest[place // (4 * MOST)], place % (4 * MOST)
        axes.set_axis_off()
        axes.imshow(held[row].permute(1, 2, 0).clip(0, 1))
        axes.imshow(weights[row, step].view(SIDE // CELL, -1), extent=extent, cmap="gray", alpha=0.6)
        axes.set_title(WORDS[words[step, row]], fontsize=9)
    figure.savefig(options.picture)
