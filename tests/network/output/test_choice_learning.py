"""Every choice learns a source of known entropy, and a run with each is read back from its folder as it was."""

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.learning.optimisers import Optimiser
from elman.network.build import build_model
from elman.tasks.experiment import Experiment
from elman.tasks.text.run import TextRun
from support import networks

WORDS = len(networks.COUNTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "contexts"), [*((choice, "single") for choice in networks.CHOICES), ("adaptive", "mos"), ("tree", "mos")]
)
def test_comes_down_to_the_entropy_of_a_source(choice, contexts):
    """A chain in which the words that share an output are equally probable, so that every choice can say it."""
    draw = np.random.default_rng(0)
    chain = draw.dirichlet(np.full(WORDS, 0.5), size=WORDS)
    rare = np.array(networks.COUNTS) < 3
    chain[:, rare] = chain[:, rare].mean(1, keepdims=True)
    chain = torch.from_numpy(chain)
    recipe = config.Model(
        encoder=config.Lookup(size=16),
        core=config.FeedForward(width=1, size=16),
        output=config.Output(contexts=networks.CONTEXTS[contexts], choice=networks.CHOICES[choice]),
    )
    if contexts == "mos":
        mixture = config.Output(contexts=config.Mixture(heads={1: 2}, size=16), choice=networks.CHOICES[choice])
        recipe = config.Model(encoder=recipe.encoder, core=recipe.core, output=mixture)
    model = build_model(recipe, WORDS, networks.COUNTS)
    optimiser = Optimiser(config.Adam(lr=0.05), list(model.parameters()))
    inputs = torch.arange(WORDS).repeat(20).unsqueeze(0)
    for _ in range(80):
        targets = torch.multinomial(chain[inputs[0]], 1).T
        optimiser.zero_grad()
        trace, _ = model.trace(inputs, model.begin(inputs.shape[1]))
        total, _ = model.output.nll(model.output.contexts(trace), targets, torch.ones_like(targets).float())
        (total / targets.numel()).backward()
        optimiser.step()
    log_probs, _ = model.log_probs(torch.arange(WORDS).unsqueeze(0), model.begin(WORDS))
    divergence = (chain * (chain.clamp(min=1e-30).log() - log_probs[0].double())).sum(-1).mean()
    unigram = chain.mean(0)
    worth = (chain * (chain.clamp(min=1e-30).log() - unigram.log())).sum(-1).mean()
    assert worth > 0.3
    assert 0 <= divergence < 0.1


def recipe(**choice):
    """One epoch of the toy recipe with another choice."""
    raw = {"encoder": {"kind": "lookup", "size": 8}, "core": {"kind": "stack", "sizes": [8]}}
    training = {"epochs": 1, "batch_size": 4, "optimiser": {"kind": "adam"}, "window": {"length": 10}}
    return config.parse_recipe(
        {"title": "toy", "model": raw | {"output": {"choice": choice}}, "training": training}, "toy"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "choice",
    [
        {"kind": "adaptive", "cutoffs": [5, 10]},
        {"kind": "tree"},
        {"kind": "tree", "assignment": "random"},
        {"kind": "rare-class", "threshold": 50},
        {"kind": "mixtape", "frequent": 7},
    ],
    ids=lambda choice: "-".join(str(choice[key]) for key in ("kind", "assignment") if key in choice),
)
def test_a_run_is_read_back_as_it_was(choice, corpus, tmp_path):
    experiment = Experiment(recipe(**choice), tmp_path / "run", data=corpus)
    experiment.train()
    experiment.finish()
    symbols = torch.randint(len(experiment.task.corpus.vocabulary), (9, 2))
    ours, loaded = experiment.model.eval(), TextRun(tmp_path / "run").model
    assert torch.equal(ours.log_probs(symbols, ours.begin(2))[0], loaded.log_probs(symbols, loaded.begin(2))[0])
    resumed = Experiment(experiment.recipe, tmp_path / "run", resume=True)
    resumed.train()
    again = resumed.model.eval()
    assert torch.equal(again.log_probs(symbols, again.begin(2))[0], loaded.log_probs(symbols, loaded.begin(2))[0])


@pytest.mark.slow
def test_clusters_by_similarity_are_those_of_the_vectors_it_starts_from(corpus, tmp_path):
    Experiment(recipe(kind="tree"), tmp_path / "first", data=corpus).train()
    similar = recipe(kind="tree", assignment="similarity")
    with pytest.raises(UserError, match=r'assignment = "similarity".*trained'):
        Experiment(similar, tmp_path / "second", data=corpus)
    assert not (tmp_path / "second").exists()
    experiment = Experiment(similar, tmp_path / "second", data=corpus, init=tmp_path / "first")
    first, tree = TextRun(tmp_path / "first").model.output.choice, experiment.model.output.choice
    assert torch.equal(first.weight, tree.weight)
    assert not torch.equal(first.order, tree.order)
    assert tree.starts.diff().max() - tree.starts.diff().min() <= 1
    order = tree.order.clone()
    experiment.train()
    assert torch.equal(TextRun(tmp_path / "second").model.output.choice.order, order)
