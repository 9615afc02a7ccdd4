"""Sigsoftmax and its neighbours where no sequence is: a small classifier of digits, with and without a spectral bound.

    python examples/digits.py                # the 1,797 digits of scikit-learn, three seeds, a few minutes
    python examples/digits.py --units 2      # two features before the output, fewer than the classes need
    python examples/digits.py --tiny         # a few seconds

Kanai's thesis names both as further work: sigsoftmax for other classes than words, and its constraint on recurrent
matrices for convolutions. Four losses train the same network: two layers of convolutions, features, ten scores. Softmax
and sigsoftmax are likelihoods; sparsemax (Martins & Astudillo 2016) can give a class the probability 0, and one-vs-each
(Titsias 2016) bounds the softmax from above. Every loss is also trained with sigma_1 of both convolutions at most 1, so
that what is added to an image grows in neither (Sedghi, Gupta & Long 2019); accuracy under noise measures the effect.
"""

import argparse
import sys
from statistics import mean

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, nll_loss

from elman import nn as enn

try:
    from sklearn.datasets import load_digits
except ImportError:
    sys.exit("the digits come with scikit-learn, which is not installed; install it: pip install scikit-learn")

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tiny", action="store_true", help="few epochs of one seed")
parser.add_argument("--units", type=int, default=32, help="features before the output")
parser.add_argument("--bound", type=float, default=1.0, help="on sigma_1 of each convolution")
parser.add_argument("--seeds", type=int, default=3)
options = parser.parse_args()
EPOCHS, SEEDS = (5, 1) if options.tiny else (40, options.seeds)
CHANNELS, TRAIN, NOISE = 16, 1000, 0.4

images, classes = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16  # pixels from 0 to 1
classes = torch.tensor(classes)

LOSSES = {
    "softmax": cross_entropy,
    "sigsoftmax": lambda z, y: nll_loss(enn.functional.log_sigsoftmax(z), y),
    "sparsemax": enn.functional.sparsemax_loss,
    "one-vs-each": enn.functional.one_vs_each_loss,
}


class Classifier(torch.nn.Module):
    """Scores of ten classes from two convolutions, their largest values in squares of 2 x 2, and a few features."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = torch.nn.Sequential(
            torch.nn.Conv2d(1, CHANNELS, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
        )
        self.features = torch.nn.Linear(CHANNELS * 4 * 4, options.units)
        self.output = torch.nn.Linear(options.units, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Scores [n, 10] of images [n, 1, 8, 8]; the largest is the class that all four functions choose."""
        return self.output(self.features(self.convolutions(images).flatten(1)).tanh())


def trained(loss: str, bounded: bool, rows: Tensor) -> tuple[Classifier, float]:
    """A classifier that has learnt some images, and the product of its convolutions' sigma_1."""
    model = Classifier()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    bound = enn.ConvolutionBound(model, 8, bound=options.bound)  # of images of 8 x 8
    for _ in range(EPOCHS):
        for batch in rows[torch.randperm(len(rows))].split(50):
            optimiser.zero_grad()
            LOSSES[loss](model(images[batch]), classes[batch]).backward()
            optimiser.step()
            if bounded:
                bound()
    first, second = bound.norms().values()
    return model, first * second


def right(model: Classifier, rows: Tensor, noise: float) -> float:
    """The share of images whose class is found, with normal noise on every pixel."""
    with torch.no_grad():
        seen = images[rows] + noise * torch.randn_like(images[rows])
        return (model(seen).argmax(-1) == classes[rows]).float().mean().item()


results = {}
print(f"{options.units} features, {SEEDS} seeds; % of {len(images) - TRAIN} held-out digits, each seed's in brackets")
for bounded in (False, True):
    for loss in LOSSES:
        seeds = []
        for seed in range(1, SEEDS + 1):
            torch.manual_seed(seed)
            train, held = torch.randperm(len(images)).tensor_split([TRAIN])
            model, product = trained(loss, bounded, train)
            seeds.append((right(model, held, 0.0), right(model, held, NOISE), product))
        results[loss, bounded] = clean, noisy, products = [*zip(*seeds, strict=True)]
        shares = [
            f"{100 * mean(one):.1f} ({', '.join(f'{100 * share:.1f}' for share in one)})" for one in (clean, noisy)
        ]
        name = f"{loss}, {'with' if bounded else 'without'} a bound"
        print(f"{name}: right {shares[0]}, with noise {shares[1]}; gain {mean(products):.2f}", flush=True)
