"""An output by angles (Wang, Xiang, Cheng & Yuille 2017, NormFace): no word is favoured by its vector's length."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from elman.config.network import Choice
from elman.network.output.activation import log_g
from elman.network.output.choice import ScoredChoice, Surroundings


class Cosine(Choice, frozen=True, tag="cosine"):
    """p(y) proportional to g(s cos(w_y, c)); `scale`: where s, which is learned, begins."""

    scale: float = 10.0

    def build(self, surroundings: Surroundings) -> "CosineChoice":
        """The module."""
        return CosineChoice(self.scale, surroundings)


class CosineChoice(ScoredChoice):
    """N positions, K contexts, D their width, V words."""

    def __init__(self, scale: float, surroundings: Surroundings) -> None:
        super().__init__()
        self.weight = surroundings.matrix(tied=False)
        self.scale = nn.Parameter(torch.tensor(scale))
        self.activation = surroundings.activation

    def scores(self, context: Tensor) -> Tensor:
        """Log g of the scaled cosines, [N, K, V]."""
        cosines = normalize(context, dim=-1) @ normalize(self.weight, dim=-1).T
        return log_g(self.scale * cosines, self.activation)
