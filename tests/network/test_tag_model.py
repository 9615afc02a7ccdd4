"""A tagger against its transcription in NumPy; padding changes nothing; parts that do not fit are refused."""

import numpy as np
import pytest
import torch

from elman import config
from elman.errors import UserError
from elman.kinds.tags.corpus import gather
from elman.learning.sentences import Tagging
from elman.network.build import build_model, tiny_model
from elman.network.tag_model import TagModel
from elman.objective.loss import Objective
from reference import tags as reference
from support import networks, tagged

SENTENCES = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 1, 2], [9], [3, 3, 3, 3]]
TAGS = [[0, 1, 2], [3, 0, 1, 2, 3, 3, 0, 1], [2], [1, 1, 0, 3]]


def tagger(*, dtype=torch.float64, words=None, **how):
    made = build_model(tagged.recipe(**how).model, 10, words=words, num_labels=4)
    return networks.randomise(made).to(dtype)


def batch(numbers=range(4)):
    pick = [np.array(SENTENCES[one]) for one in numbers], [np.array(TAGS[one]) for one in numbers]
    return gather(*pick)


def weights(model):
    """Of every layer and direction W, U and both biases added; then V and d."""
    parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")

    def of(layer):
        W, U, b, d = (getattr(layer, part).detach().numpy() for part in parts)
        return W, U, b + d

    layers = [list(map(of, both)) for both in model.core.reader.layers]
    choice = model.output.choice
    return model.encoder.weight.detach().numpy(), layers, choice.weight.detach().numpy(), choice.bias.detach().numpy()


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("sizes", [[5], [3, 4]])
def test_the_network_is_its_transcription(bidirectional, sizes):
    model = tagger(bidirectional=bidirectional, sizes=sizes).eval()
    side_by_side = batch()
    found = model.tag_log_probs(side_by_side.inputs, side_by_side.mask).exp().detach().numpy()
    for column, words in enumerate(SENTENCES):
        expected = reference.tagger(*weights(model), words)
        np.testing.assert_allclose(found[: len(words), column], expected, atol=1e-12)


@pytest.mark.parametrize("cell", [{"kind": "lstm"}, {"kind": "gru"}, {"kind": "elman"}], ids=lambda cell: cell["kind"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_padding_never_changes_a_tag_or_a_gradient(cell, bidirectional):
    """Alone, beside longer sentences, and with other words in place of the padding."""
    model = tagger(bidirectional=bidirectional, sizes=[3, 3], cell=cell)
    together = batch()
    log_probs = model.tag_log_probs(together.inputs, together.mask)
    other = torch.where(together.mask, together.inputs, torch.randint(10, together.inputs.shape))
    others = model.tag_log_probs(other, together.mask)
    torch.testing.assert_close(others[together.mask], log_probs[together.mask], rtol=0, atol=0)
    for column, words in enumerate(SENTENCES):
        alone = batch([column])
        torch.testing.assert_close(
            model.tag_log_probs(alone.inputs, alone.mask)[:, 0], log_probs[: len(words), column], rtol=0, atol=1e-12
        )
    rule, objective = Tagging(), Objective(reduction="sum")
    gradients = []
    for batches in ([together], [batch([column]) for column in range(4)]):
        model.zero_grad()
        for one in batches:
            loss, state = rule(model, objective, one, ())
            assert state == ()
            assert loss.num_counted == one.mask.sum()
        share = together.mask.shape[1] if len(batches) == 1 else 1  # the loss is a mean over sentences
        gradients.append([share * parameter.grad for parameter in model.parameters()])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_forwards_a_tag_depends_on_no_later_word_and_in_both_directions_on_all():
    for bidirectional in (True, False):
        model = tagger(bidirectional=bidirectional).eval()
        one, other = torch.tensor([[1], [2], [3]]), torch.tensor([[1], [2], [4]])
        mask = torch.ones(3, 1, dtype=torch.bool)
        same = torch.isclose(model.tag_log_probs(one, mask), model.tag_log_probs(other, mask)).all(-1)[:, 0].tolist()
        assert same == ([False] * 3 if bidirectional else [True, True, False])


def test_spelled_words_that_no_vocabulary_has():
    encoder = {"kind": "characters", "size": 4, "widths": [1, 2], "filters": [4, 6]}
    model = tagger(encoder=encoder, words=[f"w{number}" for number in range(10)]).eval()
    wider = model.knowing(["w3", "new"])
    assert isinstance(wider, TagModel)
    mask = torch.ones(2, 1, dtype=torch.bool)
    known, spelled = (wider.tag_log_probs(torch.tensor([[one], [1]]), mask) for one in (3, 10))
    torch.testing.assert_close(known, spelled)
    assert not torch.allclose(known, wider.tag_log_probs(torch.tensor([[11], [1]]), mask))


@pytest.mark.parametrize("choice", ["flat", "adaptive", "tree"])
def test_any_choice_of_symbols_is_a_distribution_over_tags(choice):
    more = {"cutoffs": [2]} if choice == "adaptive" else {}
    model = tagger(output={"choice": {"kind": choice, **more}}).eval()
    probabilities = model.tag_log_probs(batch().inputs, batch().mask).exp()
    assert probabilities.shape == (8, 4, 4)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(8, 4, dtype=torch.float64))


def test_as_a_model_of_sequences_it_reads_whole_sentences():
    model = tagger().eval()
    one = batch([1])
    log_probs, state = model.log_probs(one.inputs, model.begin(1))
    assert state == ()
    torch.testing.assert_close(log_probs, model.tag_log_probs(one.inputs, one.mask))


def test_layers_that_cannot_read_in_both_directions_are_refused():
    with pytest.raises(UserError, match=r"model\.core\.stack\.cell"):
        tagger(cell={"kind": "highway"})
    with pytest.raises(UserError, match=r"model\.core\.stack\.connections"):
        tagger(sizes=[3, 3], connections="graves")
    with pytest.raises(UserError, match=r'needs model\.core\.kind = "sentence"'):
        Tagging().check(tiny_model(), 4)


@pytest.mark.parametrize(
    ("model", "training", "says"),
    [
        ({"core": {"kind": "stack", "sizes": [4]}}, {}, 'data.kind = "tags" needs model.core.kind = "sentence"'),
        ({"output": {"choice": {"kind": "flat", "tied": True}}}, {}, "model.output.choice.tied"),
        ({"output": {"contexts": {"kind": "mixture", "heads": {"1": 2}, "size": 4}}}, {}, "with one context"),
        ({}, {"rule": {"kind": "rtrl"}}, "training.rule is for sequences, and the data are tags"),
        ({}, {"penalties": {"ar": 1.0}}, "training.penalties is for sequences"),
        ({}, {"margin": {}}, "training.margin is for parsers"),
    ],
)
def test_recipes_whose_parts_do_not_fit(model, training, says):
    raw = {
        "title": "x",
        "data": {"kind": "tags"},
        "model": {"encoder": {"kind": "lookup", "size": 8}, "core": {"kind": "sentence", "stack": {"sizes": [4]}}}
        | model,
        "training": {"epochs": 1, "optimiser": {"kind": "sgd", "lr": 1.0}} | training,
    }
    with pytest.raises(UserError) as told:
        config.parse_recipe(raw, "recipe")
    assert says in str(told.value)


def test_the_core_of_taggers_is_for_tags():
    raw = {
        "title": "x",
        "model": {"encoder": {"kind": "lookup", "size": 8}, "core": {"kind": "sentence", "stack": {"sizes": [4]}}},
        "training": {"epochs": 1, "optimiser": {"kind": "sgd", "lr": 1.0}},
    }
    with pytest.raises(UserError, match=r'with data\.kind = "text"; write "tags"'):
        config.parse_recipe(raw, "recipe")
