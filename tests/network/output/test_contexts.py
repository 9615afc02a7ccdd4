"""Contexts: single, mixture of softmaxes, direct output connection."""

import numpy as np
import torch

from elman import config
from elman.network.cores.core import Trace
from elman.network.output.contexts import build_contexts
from reference import outputs as reference
from support import networks
from support.pairwise import every_pair
from support.parameters import OUTPUT_FUNCTIONS

DIMS = (3, 5, 4)


def trace():
    levels = tuple(torch.randn(6, 2, width, dtype=torch.float64) for width in DIMS)
    return Trace(levels, tuple(torch.full_like(level, torch.nan) for level in levels))


def test_single_is_the_top_with_weight_one():
    given = trace()
    vectors, log_prior = build_contexts(config.Output(), (4,))(given)
    assert torch.equal(vectors, given.top.unsqueeze(-2))
    assert torch.equal(log_prior, torch.zeros(6, 2, 1))


@every_pair(
    prior=OUTPUT_FUNCTIONS, linear=[False, True], heads=[{2: 3}, {0: 1, 1: 2, 2: 2}, {2: 2, 0: 1}, {1: 1, 2: 0}]
)
def test_mixture_is_the_papers(heads, linear, prior):
    """Components are ordered by level, whatever the recipe's order; the last level gives the prior."""
    record = config.Mixture(heads=heads, size=7, linear=linear, prior="same")
    output = config.Output(contexts=record, activation=prior)
    layer = networks.randomise(build_contexts(output, DIMS))
    given = trace()
    vectors, log_prior = layer(given)
    ordered = [(level, count) for level, count in sorted(heads.items()) if count]
    assert vectors.shape == (6, 2, sum(count for _, count in ordered), 7)
    for t, row in np.ndindex(6, 2):
        levels = [level[t, row].numpy() for level in given.levels]
        projections = []
        for level, count in ordered:
            linear_map = layer.projections[str(level)]
            matrices, biases = (np.split(p.detach().numpy(), count) for p in linear_map.parameters())
            projections += [(level, *pair) for pair in zip(matrices, biases, strict=True)]
        expected = reference.mixture_contexts(levels, projections, (lambda k: k) if linear else np.tanh)
        np.testing.assert_allclose(vectors[t, row].detach().numpy(), expected)
        pi = reference.distribution(prior, layer.prior.weight.detach().numpy() @ levels[-1])
        np.testing.assert_allclose(log_prior[t, row].exp().detach().numpy(), pi)


def test_a_mixture_of_equal_components_is_one_of_them():
    """Whatever the prior: this is what a mixture adds, and no more."""
    model = networks.model("mos", "softmax")
    projection = model.output.contexts.projections["2"]
    with torch.no_grad():
        projection.weight.copy_(projection.weight[:4].repeat(3, 1))
        projection.bias.copy_(projection.bias[:4].repeat(3))
    trace, _ = model.trace(torch.randint(7, (5, 2)), model.begin(2))
    contexts = model.output.contexts(trace)
    alone = model.output.choice.log_probs(contexts.vectors[:, :, :1].flatten(0, 1)).view(5, 2, 7)
    torch.testing.assert_close(model.output.log_probs(trace), alone)


def test_mixture_lifts_the_rank_of_softmax():
    """Yang et al. 2018, section 2.2: a mixture of softmaxes is not bound to rank D + 1."""
    ranks = {}
    for contexts in ("single", "mos"):
        model = networks.model(contexts, words=30)
        log_probs, _ = model.log_probs(torch.randint(30, (60, 1)), model.begin(1))
        singular = torch.linalg.svdvals(log_probs.squeeze(1).detach())
        ranks[contexts] = int((singular > 1e-10 * singular[0]).sum())
    assert ranks["single"] <= 6
    assert ranks["mos"] > 10
