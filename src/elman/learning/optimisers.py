"""Optimisers: one rule for all parameters in its fused form, and Muon (Jordan et al. 2024), which has two.

Muon takes orthogonal steps for the matrices of the layers, and Adam's for everything else:

    M <- m M + (1 - m) G,   U = m M + (1 - m) G  (Nesterov)  or  M
    W <- W - lr sqrt(max(1, rows / columns)) O(U)

O(U) is about the orthogonal factor of U: all its singular values are near 1, so that a step changes all directions
alike, however large the gradient is in each. A few iterations of X <- a X + b X X' X + c X X' X X' X from X = U / |U|
find it (Newton-Schulz, with coefficients that bring singular values between about .7 and 1.2 instead of to 1), each of
which takes n^2 (2 k + n) multiply-adds for a matrix of n x k, n <= k. The gates of a layer are one matrix.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim.adam import adam
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

from elman.config import training as families
from elman.config.record import PositiveFloat, Rate
from elman.network.fast import precision

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""a, b, c of Jordan et al. 2024."""

Memory: TypeAlias = Mapping[str, list[Tensor]]


class SGD(families.Optimiser, frozen=True, tag="sgd"):
    """Stochastic gradient descent, with heavy-ball or Nesterov momentum where `momentum` is above 0."""

    lr: PositiveFloat
    momentum: Rate = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov = true has no effect without momentum; set momentum, or leave nesterov out")

    @property
    def memory(self) -> tuple[str, ...]:
        return ("momentum",) if self.momentum else ()

    def update(
        self, parameters: list[Tensor], gradients: list[Tensor], memory: Memory, lr: float, weight_decay: float
    ) -> None:
        sgd(
            parameters,
            gradients,
            [*memory.get("momentum", [None] * len(parameters))],
            fused=True,
            weight_decay=weight_decay,
            momentum=self.momentum,
            lr=lr,
            dampening=0.0,
            nesterov=self.nesterov,
            maximize=False,
        )


class Adam(families.Optimiser, frozen=True, tag="adam"):
    """Adam (Kingma & Ba 2015); `decoupled`: its weight decay (AdamW, Loshchilov & Hutter 2019)."""

    lr: PositiveFloat = 1e-3
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8
    decoupled: bool = False
    memory = ("mean", "square")

    def update(
        self, parameters: list[Tensor], gradients: list[Tensor], memory: Memory, lr: float, weight_decay: float
    ) -> None:
        if self.decoupled and weight_decay:
            torch._foreach_mul_(parameters, 1 - lr * weight_decay)
        adam(
            parameters,
            gradients,
            memory["mean"],
            memory["square"],
            [],
            memory["step"],
            fused=True,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=lr,
            weight_decay=0.0 if self.decoupled else weight_decay,
            eps=self.eps,
            maximize=False,
        )


class RMSprop(families.Optimiser, frozen=True, tag="rmsprop"):
    """RMSprop (Tieleman & Hinton 2012)."""

    lr: PositiveFloat = 1e-3
    alpha: Rate = 0.99
    eps: PositiveFloat = 1e-8
    momentum: Rate = 0.0

    @property
    def memory(self) -> tuple[str, ...]:
        """The squares, and the momentum where there is any."""
        return ("square", "momentum") if self.momentum else ("square",)

    def update(
        self, parameters: list[Tensor], gradients: list[Tensor], memory: Memory, lr: float, weight_decay: float
    ) -> None:
        rmsprop(
            parameters,
            gradients,
            memory["square"],
            [],
            memory.get("momentum", []),
            memory["step"],
            foreach=True,
            lr=lr,
            alpha=self.alpha,
            eps=self.eps,
            weight_decay=weight_decay,
            momentum=self.momentum,
            centered=False,
        )


class Muon(families.Optimiser, frozen=True, tag="muon"):
    """Muon (Jordan et al. 2024): orthogonal steps for the matrices of the layers, AdamW for everything else.

    `lr`, `momentum`, `nesterov` and `iterations` are for the matrices; `adam_lr`, `betas` and `eps` are Adam's. A
    schedule changes both rates.
    """

    lr: PositiveFloat = 0.02
    momentum: Rate = 0.95
    nesterov: bool = True
    iterations: Annotated[int, Meta(ge=1, le=100)] = 5
    adam_lr: PositiveFloat = 1e-3
    betas: tuple[Rate, Rate] = (0.9, 0.999)
    eps: PositiveFloat = 1e-8

    def build(
        self, parameters: Sequence[nn.Parameter], matrices: Sequence[nn.Parameter], weight_decay: float
    ) -> "OrthogonalSteps":
        return OrthogonalSteps(self, parameters, matrices, weight_decay)


class Optimiser:
    """Changes parameters by their gradients, by the rule of a recipe; parameters without a gradient are left alone.

    Weight decay times the parameter is added to the gradient (L2), or to the step where Adam is decoupled. The
    arithmetic is torch's own, fused over all parameters. Its optimiser classes are not used because their first step
    imports torch's compiler, which costs 75 MB and a second.

    Attributes:
        lr: the learning rate of the next step.
        memory: a tensor for each name and parameter, which begins as zeros, and the counts of steps under "step".
    """

    def __init__(
        self, recipe: families.Optimiser, parameters: Sequence[nn.Parameter], weight_decay: float = 0.0
    ) -> None:
        self.recipe, self.parameters, self.lr, self.weight_decay = recipe, list(parameters), recipe.lr, weight_decay
        self.memory = {
            name: [torch.zeros_like(p, requires_grad=False) for p in self.parameters] for name in recipe.memory
        }
        if self.memory:
            self.memory["step"] = [torch.zeros((), device=p.device) for p in self.parameters]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters that have a gradient."""
        used = [index for index, parameter in enumerate(self.parameters) if parameter.grad is not None]
        if not used:
            return
        parameters: list[Tensor] = [self.parameters[index] for index in used]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        memory = {name: [values[index] for index in used] for name, values in self.memory.items()}
        self.recipe.update(parameters, gradients, memory, self.lr, self.weight_decay)
        increment_version(parameters)  # the fused kernels do not, and what is kept of parameters is kept by version

    def tensors(self) -> dict[str, Tensor]:
        """The memory, for a checkpoint; learning rates come from the recipe."""
        return {f"{name}/{index}": value for name, values in self.memory.items() for index, value in enumerate(values)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy back what `tensors` returned."""
        for name, value in self.tensors().items():
            value.copy_(tensors[name])


class OrthogonalSteps(Optimiser):
    """Changes parameters by their gradients: `matrices` by Muon's orthogonal steps, the others by Adam's.

    The rate of Adam is to `adam_lr` as the rate of the matrices is to `lr`. Weight decay is decoupled. Products of the
    iterations are in the chosen precision (`elman.network.fast.precision`).

    Attributes:
        lr: the learning rate of the next step, of the matrices.
        momentum: M of each matrix.
    """

    recipe: Muon

    def __init__(
        self,
        recipe: Muon,
        parameters: Sequence[nn.Parameter],
        matrices: Sequence[nn.Parameter],
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(recipe, parameters, weight_decay)
        self.matrices = list(matrices)
        own = {id(matrix) for matrix in matrices}
        others = [parameter for parameter in parameters if id(parameter) not in own]
        rule = Adam(lr=recipe.adam_lr, betas=recipe.betas, eps=recipe.eps, decoupled=True)
        self.adam = Optimiser(rule, others, weight_decay)
        self.momentum = [torch.zeros_like(matrix, requires_grad=False) for matrix in self.matrices]

    @torch.no_grad()
    def step(self) -> None:
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
        own = {f"momentum/{index}": value for index, value in enumerate(self.momentum)}
        return own | {f"adam/{name}": value for name, value in self.adam.tensors().items()}


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
