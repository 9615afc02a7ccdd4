import numpy as np
import pytest
import torch

from elman.data.windows import EvaluationWindows
from elman.errors import UserError
from elman.evaluation.adaptive_stream import AdaptiveStream, saved_rule
from elman.evaluation.dynamic import DynamicModel, Rule, adaptive_stream
from elman.network.state import leaves
from support import networks

WORDS = 7
TEXT = np.random.default_rng(0).integers(WORDS, size=43)
RULE = Rule(kind="sgd", lr=0.3, decay=0.1, segment=5)


def stream(model):
    return AdaptiveStream(model, RULE, None, first=0)


def facts_of(one):
    """Tensors and facts as a state file has them."""
    adapted, rule = one.saved()
    states = {str(index): leaf for index, leaf in enumerate(leaves(one.state))}
    return {name: tensor.clone() for name, tensor in (states | adapted).items()}, rule | {"unread": one.unread}


@pytest.mark.slow
@pytest.mark.parametrize("read", [TEXT, np.roll(TEXT, 7)], ids=["text", "other inputs"])
@pytest.mark.parametrize("cuts", [[], [5], [3], [1, 2, 4, 12, 13], [20, 40]])
def test_predictions_of_a_stream_do_not_depend_on_its_pieces(cuts, read):
    model = networks.model()
    windows = EvaluationWindows(TEXT, 0, length=5, inputs=read)
    learner = DynamicModel(model, RULE)
    whole = torch.cat([part for part, _ in adaptive_stream(learner.read, model, windows)]).numpy()
    one = stream(model)
    parts = list(one.score_all(np.split(TEXT, cuts), np.split(read, cuts)))
    assert [len(part) for part in parts] == [len(part) for part in np.split(TEXT, cuts)]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [0, 4, 5, 23])
def test_a_stream_goes_on_exactly_where_it_was_saved(cut):
    model = networks.model()
    whole, before, after = stream(model), stream(model), stream(model)
    whole.score(TEXT)
    before.score(TEXT[:cut])
    after.restore(*facts_of(before))
    expected = stream(model)
    expected.score(TEXT[:cut])
    np.testing.assert_array_equal(after.score(TEXT[cut:]), expected.score(TEXT[cut:]))
    assert after.unread == whole.unread
    for mine, theirs in zip(after.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    for mine, theirs in zip(leaves(after.state), leaves(whole.state), strict=True):
        assert torch.equal(mine, theirs)


def test_where_sentences_end_the_scores_too_go_on_bit_by_bit():
    model, sentences = networks.model(), np.split(TEXT, [3, 9, 20, 31])
    whole, before, after = stream(model), stream(model), stream(model)
    expected = list(whole.score_all(sentences))
    found = list(before.score_all(sentences[:2]))
    after.restore(*facts_of(before))
    found += list(after.score_all(sentences[2:]))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_plain_state_is_a_beginning_too():
    model = networks.model().eval()
    _, state = model.trace(torch.tensor(TEXT[:9])[:, None], model.begin(1))
    tensors = {str(index): leaf.detach() for index, leaf in enumerate(leaves(state))}
    one = stream(model)
    one.restore(tensors, {"unread": [int(TEXT[9])]})
    found = one.score(TEXT[10:12])
    inputs, targets = torch.tensor(TEXT[:11])[:, None], torch.tensor(TEXT[1:12])[:, None]
    expected = model.log_prob(inputs, targets, model.begin(1))[0][-2:, 0]
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5)


def test_the_rule_of_a_stream_cannot_change():
    facts = facts_of(stream(networks.model()))[1]
    assert saved_rule(facts, None, Rule()) == RULE
    assert saved_rule({}, None, Rule()) == Rule()
    with pytest.raises(UserError, match="--load-state: the stream adapts by kind=sgd"):
        saved_rule(facts, Rule(), Rule())


def test_a_stream_predicts_what_follows_a_sentence_without_tokens():
    one = stream(networks.model())
    one.score(TEXT[:7])
    found = one.predict([])
    assert [len(part) for part in found] == [0, 0, 1, 1]
    np.testing.assert_allclose(one.predict(TEXT[7:8]).entropy[0], found.entropy[0], rtol=1e-6)
