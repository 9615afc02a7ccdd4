"""Points of a pen: where it moves, and whether it is lifted.

N positions, K contexts, D their width, M components of a mixture.
"""

import math
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from elman.network.output.choice import Draws, PerContext, Row, Targets, Vectors
from elman.network.output.density import Density, normal_like


class Strokes(NamedTuple):
    """Log-weights [..., M], means [..., M, 2], Cholesky factors of the covariances, and the pen's log-odds [...].

    A factor is [[a, 0], [b, c]]; a, b and c are [..., M] each.
    """

    log_weight: Tensor
    means: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    lifted: Tensor


@final
class PenChoice(Density):
    """p(x, y, e) = sum_m w_m N((x, y); mu_m, S_m) times e^ if the pen is lifted (e = 1) and 1 - e^ if not.

    Graves (2013), eqs 15 to 25: w is a softmax, mu linear, s = exp(a) and r = tanh(q) are the deviations and the
    correlation of S, and e^ is logistic. S = floor^2 I + [[s_1^2, r s_1 s_2], [r s_1 s_2, s_2^2]] has a floor, which
    the paper lacks, against a component that shrinks onto a point or onto a straight line.
    """

    def __init__(self, size: int, components: int, floor: float) -> None:
        super().__init__()
        self.floor = floor
        self.numbers = nn.Linear(size, 6 * components + 1)
        nn.init.zeros_(self.numbers.bias)
        with torch.no_grad():  # with equal means the gradients of all components would be equal
            angles = torch.arange(components) * (2 * math.pi / components)
            self.numbers.bias[components : 3 * components] = torch.stack([angles.cos(), angles.sin()], 1).flatten()

    def strokes(self, context: Float[Tensor, "*N D"]) -> Strokes:
        """The distribution given contexts [..., D]."""
        numbers = self.numbers(context)
        components = numbers.shape[-1] // 6
        weight, mean, spread, q, lifted = numbers.split([components, *[2 * components] * 2, components, 1], -1)
        s = spread.unflatten(-1, (components, 2)).exp()
        first, second, floor = s[..., 0], s[..., 1], self.floor**2
        rest = 4 * (2 * q).sigmoid() * (-2 * q).sigmoid()  # 1 - r^2
        determinant = floor * (floor + first.square() + second.square()) + (first * second).square() * rest
        a = (floor + first.square()).sqrt()
        b, c = q.tanh() * first * second / a, determinant.sqrt() / a
        return Strokes(weight.log_softmax(-1), mean.unflatten(-1, (components, 2)), a, b, c, lifted.squeeze(-1))

    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N 3"]:
        """The mean move, and the probability that the pen is lifted, given contexts [..., D]."""
        found = self.strokes(context)
        move = (found.log_weight.exp().unsqueeze(-1) * found.means).sum(-2)
        return torch.cat([move, found.lifted.sigmoid().unsqueeze(-1)], -1)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        found = self.strokes(context)
        x, y = (target[:, None, None, :2] - found.means).unbind(-1)
        u = x / found.a
        v = (y - found.b * u) / found.c
        each = -0.5 * (u.square() + v.square()) - (found.a * found.c).log() - math.log(2 * math.pi)
        pen = nn.functional.logsigmoid((2 * target[:, None, 2] - 1) * found.lifted)
        return torch.logsumexp(found.log_weight + each, -1) + pen

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Points [N, 3] given contexts [N, D].

        The temperature divides the log-weights and the pen's log-odds and multiplies the covariances; at 0 the mean of
        the heaviest component is returned, and the likelier of lifted and not.
        """
        log_weight, means, a, b, c, lifted = self.strokes(context)
        if temperature == 0:
            index, pen = log_weight.argmax(-1, keepdim=True), (lifted > 0).to(means.dtype)
        else:
            index = torch.multinomial((log_weight / temperature).softmax(-1), 1, generator=generator)
            pen = torch.bernoulli((lifted / temperature).sigmoid(), generator=generator)
        mean = means.take_along_dim(index.unsqueeze(-1), dim=1).squeeze(1)
        a, b, c = (part.gather(-1, index).squeeze(-1) for part in (a, b, c))
        u, v = (math.sqrt(temperature) * normal_like(mean, generator)).unbind(-1)
        return torch.stack([mean[:, 0] + a * u, mean[:, 1] + b * u + c * v, pen], -1)
