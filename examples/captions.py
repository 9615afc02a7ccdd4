"""Captions of images by a network that looks at a part of the image for every word, or is given all of it once.

    python examples/captions.py            # five minutes on one thread
    python examples/captions.py --tiny     # a few seconds
    python examples/captions.py --picture attention.png

An image shows one to three shapes, and its caption names them in reading order: "large red circle left of small blue
square". Convolutions make a grid of 8 x 8 feature vectors, to which the two coordinates are appended, since the order
of a caption depends on places (Liu et al. 2018, An intriguing failing of convolutional neural networks). Given the image
once, an LSTM begins from the whole grid (Vinyals, Toshev, Bengio & Erhan 2015, Show and tell). With soft attention it
begins from the mean of the grid, and before each word reads the mean of the grid under weights (Xu et al. 2015, Show,
attend and tell, section 4.2); with `--hard` it reads one drawn place, whose weights learn by REINFORCE (section 4.1).
"""

import argparse
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from elman import nn as enn
from elman.nn import penalties

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--picture", type=Path, help="a PNG file: an image under the attention of every word")
parser.add_argument("--tiny", action="store_true", help="one shape in every image, and few updates")
parser.add_argument("--updates", type=int, default=1500)
parser.add_argument("--hard", action="store_true", help="hard attention too")
parser.add_argument("--coverage", type=float, default=0.0, help="the weight of doubly stochastic attention (eq. 14)")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
torch.set_num_threads(1)

# Images [B, 3, 32, 32] and captions [T, B] of a size, a colour and a shape for each thing, with relations between them.

SIZES, SHAPES = ("small", "large"), ("circle", "square", "triangle", "cross")
COLOURS = {"red": (0.9, 0.2, 0.2), "green": (0.2, 0.8, 0.3), "blue": (0.2, 0.4, 0.95), "yellow": (0.95, 0.85, 0.2)}
RELATIONS = ("left of", "above", "above left of", "above right of")  # each is one symbol
WORDS = ("<eos>", *SIZES, *COLOURS, *SHAPES, *RELATIONS)
BEGIN = {part[0]: WORDS.index(part[0]) for part in (SIZES, [*COLOURS], SHAPES, RELATIONS)}
SIDE, CELL, MOST = 32, 4, 1 if options.tiny else 3
LENGTH, PLACES = 4 * MOST, (SIDE // CELL) ** 2
AT = torch.linspace(-1, 1, SIDE // CELL).expand(1, 1, SIDE // CELL, -1)


def batch(number: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images, captions with <eos> at the end and after it, and the pixels [B, n, 32, 32] of each thing."""

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=draw)

    count = torch.randint(1, MOST + 1, (number, 1), generator=draw)
    fields = uniform(number, 9).argsort(1)[:, :MOST].masked_fill(torch.arange(MOST) >= count, 9).sort(1).values
    size, colour, shape = (torch.randint(one, (number, MOST), generator=draw) for one in (2, 4, 4))
    row, column, there = fields // 3, fields % 3, fields < 9
    r = (3.7 + 1.2 * size + 0.2 * uniform(number, MOST))[..., None, None]
    y = torch.arange(SIDE).view(-1, 1) - (row * 10.5 + 4.75 + uniform(number, MOST))[..., None, None]
    x = torch.arange(SIDE) - (column * 10.5 + 4.75 + uniform(number, MOST))[..., None, None]
    circle, square = x**2 + y**2 < r**2, torch.maximum(x.abs(), y.abs()) < 0.9 * r
    triangle = (x.abs() < (y + r) / 2) & (y < 0.9 * r)
    cross = (torch.minimum(x.abs(), y.abs()) < r / 3.2) & (torch.maximum(x.abs(), y.abs()) < r)
    kinds = torch.stack([circle, square, triangle, cross], -1)
    pixels = kinds.take_along_dim(shape[..., None, None, None], -1).squeeze(-1) & there[..., None, None]
    image = torch.full((number, 3, SIDE, SIDE), 0.35)
    for one in range(MOST):
        paint = torch.tensor([*COLOURS.values()])[colour[:, one], :, None, None]
        image = torch.where(pixels[:, one, None], paint, image)
    image += 0.05 * torch.randn(image.shape, generator=draw)
    down, right = row.diff(dim=1), column.diff(dim=1)
    relation = torch.where(down == 0, 0, torch.where(right == 0, 1, torch.where(right > 0, 2, 3)))
    named = torch.stack([BEGIN["small"] + size, BEGIN["red"] + colour, BEGIN["circle"] + shape], -1) * there[..., None]
    related = nn.functional.pad((BEGIN["left of"] + relation) * there[:, 1:], (0, 1))
    return image, torch.cat([named, related.unsqueeze(-1)], -1).flatten(1).t(), pixels


class Captions(nn.Module):
    """Convolutions, an LSTM, and what is between them: attention, or all of the grid as the first state."""

    def __init__(self, way: str, size: int = 128, features: int = 64, embedding: int = 32) -> None:
        super().__init__()
        self.way, self.context = way, 0 if way == "once" else features + 2
        layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.Conv2d(24, 48, 4, 2, 1), nn.Conv2d(48, features, 3, 1, 1)]
        norms = [nn.GroupNorm(8, layer.out_channels) for layer in layers]  # without them shapes are not learnt
        self.see = nn.Sequential(*(part for pair in zip(layers, norms, strict=True) for part in (*pair, nn.ReLU())))
        self.begin = nn.Linear((features + 2) * (PLACES if way == "once" else 1), 2 * size)
        self.attention = enn.AdditiveAttention(size, features + 2, 32)
        self.words = enn.Embedding(len(WORDS), embedding)
        self.core = enn.LSTM(embedding + self.context, size)
        self.core.fused = False  # single steps have nothing to gain from the fused kernel
        self.deep = nn.Linear(size + self.context + embedding, 96)  # eq. 7: state, context and the word before
        self.output = enn.Softmax(96, len(WORDS))

    def forward(self, images: Tensor, captions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What the output reads [T, B, 96], weights [T, B, S], words [T, B], the likeliest if no captions are given,
        and the log-probabilities [T, B] of the places that hard attention drew.
        """
        at = [one.expand(len(images), -1, -1, -1) for one in (AT, AT.transpose(2, 3))]
        grid = torch.cat([self.see(images), *at], 1).flatten(2).transpose(1, 2)
        keys = self.attention.keys(grid)
        h, c = self.begin(grid.flatten(1) if self.way == "once" else grid.mean(1)).tanh().unsqueeze(0).chunk(2, -1)
        last, found = torch.zeros(len(images), dtype=torch.int64), []
        drawing = self.way == "hard" and (not self.training or bool(torch.rand(()) < 0.5))  # else it reads the mean
        for step in range(LENGTH):
            context, weights, drawn = grid[:, 0], grid.new_zeros(grid.shape[:2]), last.unsqueeze(1)
            if self.way != "once":
                context, weights = (part.squeeze(1) for part in self.attention(h.transpose(0, 1), grid, keys))
            if drawing:
                drawn = weights.detach().multinomial(1) if self.training else weights.argmax(1, keepdim=True)
                context = grid.take_along_dim(drawn.unsqueeze(-1), 1).squeeze(1)
            read = torch.cat([self.words(last.unsqueeze(0))[0], context[:, : self.context]], -1)
            out, (h, c) = self.core(read.unsqueeze(0), (h.contiguous(), c.contiguous()))
            seen = self.deep(torch.cat([out[0], read], -1)).tanh()
            last = self.output.log_probs(seen).argmax(-1) if captions is None else captions[step]
            found.append(
                (seen, weights, last, weights.gather(1, drawn).squeeze(1).log() if drawing else h[0, :, 0] * 0)
            )
        seen, weights, words, log_drawn = (torch.stack(part) for part in zip(*found, strict=True))
        return seen, weights.transpose(0, 1), words, log_drawn


def measured(model: Captions) -> tuple[dict[str, float], float]:
    """The share of each attribute said in its place, and of the words of a thing whose weights are greatest on it."""
    images, captions, pixels = batch(100 if options.tiny else 1000, torch.Generator().manual_seed(999))
    with torch.no_grad():
        _, weights, words, _ = model.eval()(images)
    right, said = (one.view(MOST, 4, -1) for one in (words == captions, captions > 0))
    cells = nn.functional.max_pool2d(pixels.float(), CELL).flatten(2)
    looks = weights.argmax(2).view(-1, MOST, 4)
    on = cells.gather(2, looks[..., :3])[said[:, :3].permute(2, 0, 1)].mean().item()
    names = ("size", "colour", "shape", "relation")[: 3 if MOST == 1 else 4]
    return {name: right[:, one][said[:, one]].float().mean().item() for one, name in enumerate(names)}, on


results, models = {}, {}
for way in ("once", "soft", "hard") if options.hard else ("once", "soft"):
    torch.manual_seed(options.seed)
    draw, began, expected = torch.Generator().manual_seed(options.seed), time.process_time(), 0.0
    model = models[way] = Captions(way)
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, options.updates, pct_start=0.1)
    for update in range(options.updates):
        images, captions, _ = batch(64, draw)
        seen, weights, _, log_drawn = model.train()(images, captions)
        counts = torch.cat([torch.ones(1, captions.shape[1]).bool(), captions[:-1] > 0])  # words, and the first <eos>
        each = model.output.nll(seen, captions, "none", weight=counts)
        loss = each.sum() / counts.sum() + penalties.coverage(weights, options.coverage, counts.t())
        if way == "hard":
            reward = -each.detach().sum(0)
            expected = 0.9 * expected + 0.1 * reward.mean().item()
            loss = loss - 0.1 * ((reward - expected) * (log_drawn * counts).sum(0)).mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if update % 200 == 199:
            print(update + 1, loss.item(), measured(model), time.process_time() - began, flush=True)
    results[way] = measured(model)
    accuracy, on = results[way]
    said = ", ".join(f"{attribute} {share:.3f}" for attribute, share in accuracy.items())
    looks = "" if way == "once" else f"; attention on the right shape {on:.3f}"
    print(f"{way}: {said}{looks}; {time.process_time() - began:.0f} s of processor time", flush=True)

if options.picture:
    from matplotlib.figure import Figure

    images, captions, _ = batch(20, torch.Generator().manual_seed(7))
    chosen = (captions > 0).sum(0).argsort(descending=True)[:2]
    with torch.no_grad():
        _, weights, words, _ = models["soft"].eval()(images[chosen])
    figure = Figure((1.4 * (LENGTH + 1), 3.4), layout="constrained")
    for row, each in enumerate(figure.subplots(2, LENGTH, squeeze=False)):
        for step, axes in enumerate(each):
            axes.set_axis_off()
            if not step or words[step - 1, row]:
                axes.imshow(images[chosen[row]].permute(1, 2, 0).clip(0, 1))
                seen = weights[row, step].view(SIDE // CELL, -1)
                extent = (-0.5, SIDE - 0.5, SIDE - 0.5, -0.5)
                axes.imshow(seen, extent=extent, cmap="gray", alpha=0.6, interpolation="bilinear")
                axes.set_title(WORDS[words[step, row]], fontsize=9)
    figure.savefig(options.picture)
