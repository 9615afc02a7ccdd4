"""Real values under a mixture of normal distributions.

N positions, K contexts, D their width, P values, M components of a mixture density network.
"""

from typing import Annotated, final

import torch
from jaxtyping import Float
from msgspec import Meta
from torch import Generator, Tensor, nn

from elman import config
from elman.config.record import PositiveFloat
from elman.network.output.choice import Draws, PerContext, Row, Surroundings, Targets, Vectors
from elman.network.output.density import Density, log_normal, normal_like, variance


class GaussianMixture(config.Choice, frozen=True, tag="gaussian-mixture"):
    """Mixture density network: `components` normal distributions with diagonal variances, none below floor^2."""

    components: Annotated[int, Meta(ge=1)] = 5
    floor: PositiveFloat = 1e-3


@final
class GaussianMixtureChoice(Density, of=GaussianMixture):
    """p(v) = sum_m w_m prod_p N(v_p; mu_mp, s_mp^2): a mixture density network.

    Bishop (1994), Mixture density networks, eqs 22 to 27; of recurrent networks Graves (2013), section 4.1. The weights
    w are a softmax of M outputs, the means mu are linear outputs and s^2 = floor^2 + exp(2 a) with a floor, which
    Bishop's eq. 26 lacks, against a component that shrinks onto one value.
    """

    def __init__(self, record: GaussianMixture, surroundings: Surroundings) -> None:
        super().__init__()
        self.shape, self.floor = (record.components, surroundings.num_outputs), record.floor
        numbers = record.components * surroundings.num_outputs
        self.weight, self.centre, self.spread = (
            nn.Linear(surroundings.size, width) for width in (record.components, numbers, numbers)
        )
        for part in (self.weight, self.centre, self.spread):
            nn.init.zeros_(part.bias)
        # With equal means the gradients of all components would be equal.
        start = torch.linspace(-1, 1, record.components) if record.components > 1 else torch.zeros(1)
        with torch.no_grad():
            self.centre.bias.copy_(start.repeat_interleave(surroundings.num_outputs))

    def components(self, context: Float[Tensor, "*N D"]) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights [..., M], means [..., M, P] and variances [..., M, P] given contexts [..., D]."""
        means, spreads = (part(context).unflatten(-1, self.shape) for part in (self.centre, self.spread))
        return self.weight(context).log_softmax(-1), means, variance(spreads, self.floor)

    def mean(self, context: Float[Tensor, "*N D"]) -> Float[Tensor, "*N P"]:
        """The mean over all components, [..., P], given contexts [..., D]."""
        log_weight, means, _ = self.components(context)
        return (log_weight.exp().unsqueeze(-1) * means).sum(-2)

    def log_prob(self, context: Vectors, target: Targets) -> PerContext:
        log_weight, means, variances = self.components(context)
        each = log_normal(target[:, None, None], means, variances).sum(-1)
        return torch.logsumexp(log_weight + each, dim=-1)

    def below(self, context: Float[Tensor, "*N D"], target: Float[Tensor, "*N P"]) -> Float[Tensor, "*N P"]:
        log_weight, means, variances = self.components(context)
        each = torch.special.ndtr((target.unsqueeze(-2) - means) / variances.sqrt())
        return (log_weight.exp().unsqueeze(-1) * each).sum(-2)

    def sample(self, context: Row, temperature: float, generator: Generator | None) -> Draws:
        """Values [N, P] given contexts [N, D]: first a component, then its values.

        The temperature divides the log-weights and multiplies the variances; at 0 the mean of the heaviest component
        is returned.
        """
        log_weight, means, variances = self.components(context)
        if temperature == 0:
            index = log_weight.argmax(-1, keepdim=True)
        else:
            index = torch.multinomial((log_weight / temperature).softmax(-1), 1, generator=generator)
        mean, spread = (part.take_along_dim(index.unsqueeze(-1), dim=1).squeeze(1) for part in (means, variances))
        return mean + (temperature * spread).sqrt() * normal_like(mean, generator)
