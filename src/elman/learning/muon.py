"""Muon: orthogonal steps for the matrices of the layers, Adam's for everything else (Jordan et al. 2024).

    M <- m M + (1 - m) G,   U = m M + (1 - m) G  (Nesterov)  or  M
    W <- W - lr sqrt(max(1, rows / columns)) O(U)

O(U) is about the orthogonal factor of U: all its singular values are near 1, so that a step changes all directions
alike, however large the gradient is in each. A few iterations of X <- a X + b X X' X + c X X' X X' X from X = U / |U|
find it (Newton-Schulz, with coefficients that bring singular values between about .7 and 1.2 instead of to 1), each of
which takes n^2 (2 k + n) multiply-adds for a matrix of n x k, n <= k. The gates of a layer are one matrix.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from elman import config
from elman.learning.optimisers import Optimiser
from elman.network.fast import precision

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b, c of Jordan et al. 2024."""


class Muon:
    """Changes parameters by their gradients, as `Optimiser` does; those of `matrices` by orthogonal steps.

    The rate of Adam is to `adam_lr` as that of the matrices to `lr`. Weight decay is decoupled. Products of the
    iterations are in the chosen precision (`elman.network.fast.precision`).

    Attributes:
        lr: the learning rate of the next step, of the matrices.
        momentum: M of each matrix.
    """

    def __init__(
        self,
        recipe: config.Muon,
        parameters: Sequence[nn.Parameter],
        matrices: Sequence[nn.Parameter],
        weight_decay: float = 0.0,
    ) -> None:
        self.recipe, self.parameters, self.matrices, self.lr = recipe, list(parameters), list(matrices), recipe.lr
        self.weight_decay = weight_decay
        own = {id(matrix) for matrix in matrices}
        others = [parameter for parameter in parameters if id(parameter) not in own]
        adam = config.Adam(lr=recipe.adam_lr, betas=recipe.betas, eps=recipe.eps, decoupled=True)
        self.adam = Optimiser(adam, others, weight_decay)
        self.momentum = [torch.zeros_like(matrix, requires_grad=False) for matrix in self.matrices]

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters that have a gradient."""
        self.adam.lr = self.recipe.adam_lr * self.lr / self.recipe.lr
        self.adam.step()
        for matrix, momentum in zip(self.matrices, self.momentum, strict=True):
            if (gradient := matrix.grad) is None:
                continue
            momentum.lerp_(gradient, 1 - self.recipe.momentum)
            direction = gradient.lerp(momentum, self.recipe.momentum) if self.recipe.nesterov else momentum
            step = orthogonal_factor(direction, self.recipe.iterations)
            rows, columns = matrix.shape
            matrix.mul_(1 - self.lr * self.weight_decay)
            matrix.add_(step, alpha=-self.lr * math.sqrt(max(1.0, rows / columns)))

    def tensors(self) -> dict[str, Tensor]:
        """The memory, for a checkpoint; learning rates come from the recipe."""
        own = {f"momentum/{index}": value for index, value in enumerate(self.momentum)}
        return own | {f"adam/{name}": value for name, value in self.adam.tensors().items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy back what `tensors` returned."""
        for name, value in self.tensors().items():
            value.copy_(tensors[name])


def orthogonal_factor(matrix: Tensor, iterations: int) -> Tensor:
    """About the orthogonal factor of a matrix [n, k], in its type; of zeros, zeros."""
    a, b, c = COEFFICIENTS
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.T
    x = x / x.norm().clamp(min=1e-7)
    if precision.chosen() == "bf16":
        x = x.bfloat16()
    for _ in range(iterations):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x if wide else x.T).to(matrix.dtype)
