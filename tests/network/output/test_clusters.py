"""Clusters of the tree: every word once, sizes that keep the cost down, likeness where it is asked for."""

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.network.encoders.encoder import build_encoder
from elman.network.output import tree
from elman.network.output.choice import build_choice, zipf


def made(kind, num_words, num_clusters):
    draw = np.random.default_rng(0)
    match kind:
        case "frequency":
            return tree.by_frequency(zipf(num_words).numpy(), num_clusters)
        case "even":
            return tree.by_frequency(np.ones(num_words), num_clusters)
        case "one word only":
            return tree.by_frequency(np.eye(num_words)[0], num_clusters)
        case "random":
            return tree.Clusters.of(np.array_split(draw.permutation(num_words), num_clusters))
        case "similarity":
            return tree.by_similarity(draw.standard_normal((num_words, 3)), num_clusters)
        case "the same vector":
            return tree.by_similarity(np.ones((num_words, 3)), num_clusters)


@pytest.mark.parametrize("kind", ["frequency", "even", "one word only", "random", "similarity", "the same vector"])
def test_every_word_has_one_cluster_and_none_is_large(kind):
    for num_words, num_clusters in ((2, 2), (13, 4), (13, 12), (13, 13), (1000, 32), (997, 2)):
        assert_shared_out(kind, num_words, num_clusters)


def assert_shared_out(kind, num_words, num_clusters):
    order, starts = made(kind, num_words, num_clusters)
    sizes = np.diff(starts)
    assert sorted(order) == list(range(num_words))
    assert len(sizes) == num_clusters
    assert starts[0] == 0
    assert starts[-1] == num_words
    assert sizes.min() >= 1
    bound = -(-num_words // num_clusters)
    assert sizes.max() <= (2 * bound if kind in ("frequency", "one word only") else bound + (kind == "even"))
    assert all((np.diff(words) > 0).all() for words in np.split(order, starts[1:-1]))


def test_frequent_words_have_small_clusters_of_equal_mass():
    order, starts = made("frequency", 10_000, 100)
    mass = np.add.reduceat(zipf(10_000).numpy()[order], starts[:-1])
    sizes = np.diff(starts)
    assert sizes[0] == 1
    assert sizes[-1] > 50
    middle = mass[len(mass) // 4 : len(mass) // 2]
    assert middle.max() < 1.5 * middle.min()


def test_frequency_costs_less_than_chance():
    """A target's cluster is smaller on the average, which is what the cost of the tree depends on."""
    frequency = zipf(10_000).numpy()
    expected = {}
    for kind in ("frequency", "random"):
        order, starts = made(kind, 10_000, 100)
        sizes = np.repeat(np.diff(starts), np.diff(starts))
        expected[kind] = (frequency[order] * sizes).sum()
    assert expected["frequency"] < 0.8 * expected["random"]


def test_words_need_not_come_by_frequency():
    frequency = np.random.default_rng(0).dirichlet(np.full(50, 0.3))
    order, starts = tree.by_frequency(frequency, 5)
    least = [frequency[words].min() for words in np.split(order, starts[1:-1])]
    most = [frequency[words].max() for words in np.split(order, starts[1:-1])]
    assert all(low >= high for low, high in zip(least, most[1:], strict=False))


def test_similar_words_stand_together():
    """Four clouds of vectors far apart are four clusters."""
    draw = np.random.default_rng(0)
    cloud = draw.permutation(np.repeat(np.arange(4), 25))
    centres = np.array([[9.0, 5, 0], [-9, 5, 1], [9, -5, 1], [-9, -5, 0]])
    order, starts = tree.by_similarity(centres[cloud] + 0.1 * draw.standard_normal((100, 3)), 4)
    assert all(len(set(cloud[words])) == 1 for words in np.split(order, starts[1:-1]))


def test_more_clusters_than_words():
    recipe = config.Output(choice=config.Tree(clusters=8))
    with pytest.raises(UserError, match=r"model\.output\.choice\.clusters.* 7 words"):
        build_choice(recipe, 3, build_encoder(config.Lookup(size=3), 7, locked=True), 7)


@pytest.mark.parametrize("assignment", ["frequency", "random"])
def test_words_of_other_clusters_have_no_share(assignment):
    """Also where the words of a cluster are not consecutive, and of few targets."""
    torch.manual_seed(0)
    recipe = config.Output(choice=config.Tree(clusters=5, assignment=assignment))
    choice = build_choice(recipe, 3, build_encoder(config.Lookup(size=3), 23, locked=True), 23)
    for parameter in choice.parameters():
        torch.nn.init.normal_(parameter)
    context = torch.randn(23, 2, 3)
    every = choice.log_probs(context).gather(2, torch.arange(23)[:, None, None].expand(-1, 2, 1)).squeeze(2)
    for targets in (torch.arange(23), torch.tensor([22, 4, 4]), torch.tensor([0])):
        torch.testing.assert_close(choice.log_prob(context[targets], targets), every[targets])
