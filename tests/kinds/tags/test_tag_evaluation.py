"""Tags that are found: accuracy, chunks and baseline by hand, whatever the batches are."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.evaluation.labelling import Labelling
from elman.kinds.tags.columns import TaggedSentence
from elman.kinds.tags.corpus import TagSymbols, open_tags, split_of
from elman.kinds.tags.evaluation import (
    Tagging,
    chunk_measures,
    confusions,
    measures,
    most_frequent,
    tag,
    training_loss,
)
from elman.kinds.tags.lexicon import Lexicon
from elman.kinds.tags.record import TagOptions
from elman.network.build import build_model
from reference.tags import conlleval
from support import networks, tagged


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tagged.write(tmp_path_factory.mktemp("tags") / "file")
    return open_tags(path, TagOptions(valid=20, test=20, min_count=1))


@pytest.fixture(scope="module")
def model(corpus):
    symbols = corpus.symbols
    made = build_model(tagged.recipe().model, len(symbols.words), num_labels=len(symbols))
    return networks.randomise(made).float().eval()


def symbols_of(words, tags):
    labels = Vocabulary((*dict.fromkeys(tags), "<unk>"), (*([1] * len(set(tags))), 0))
    known = Vocabulary((*dict.fromkeys(words), "<unk>"), (*([1] * len(set(words))), 0))
    return TagSymbols(known, labels, TagOptions(), Lexicon.of(words, tags))


def test_accuracy_of_known_and_unknown_words_by_hand():
    symbols = symbols_of(["a", "b"], ["X", "Y"])
    split = split_of("test", [TaggedSentence(["a", "new"], ["X", "Y"]), TaggedSentence(["b"], ["X"])], symbols)
    found = Labelling(np.log([0.5, 0.25, 1.0]), np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([0, 0, 1]))
    every, known, unknown = measures(found, split, symbols)
    assert [one.name for one in (every, known, unknown)] == [
        "accuracy", "accuracy, known words", "accuracy, unknown words",
    ]  # fmt: skip
    assert every.statistics.tolist() == [[2, 2], [0, 1]]
    assert known.statistics.tolist() == [[1, 1], [0, 1]]
    assert unknown.statistics.tolist() == [[1, 1], [0, 0]]
    assert [one.value for one in (every, known, unknown)] == pytest.approx([200 / 3, 50, 100])
    alone = split_of("test", [TaggedSentence(["b"], ["X"])], symbols)
    names = [one.name for one in measures(Labelling(np.zeros(1), *np.array([[0], [0], [0]])), alone, symbols)]
    assert names == ["accuracy", "accuracy, known words"]
    (confused,) = confusions(found, symbols)
    assert (confused.right, confused.found, confused.count, confused.total) == ("X", "Y", 1, 2)


def test_the_most_frequent_tag_by_hand():
    """`a` is Y more often; `new` has the tag of words seen once, of which two are X; Z is a tag that training lacks."""
    symbols = symbols_of(["a", "a", "a", "b", "c", "d"], ["Y", "Y", "X", "X", "X", "Y"])
    split = split_of("test", [TaggedSentence(["a", "new", "b"], ["Y", "X", "Z"])], symbols)
    found = most_frequent(symbols, split)
    assert symbols.labels.decode(found.found) == ["Y", "X", "X"]
    assert found.right.tolist() == [0, 1, symbols.unknown_label]
    p_0 = {"X": 3 / 6, "Y": 2 / 6, "<unk>": 1 / 6}
    wanted = [(2 + p_0["Y"]) / 4, p_0["X"], p_0["<unk>"] / 2]
    np.testing.assert_allclose(np.exp(found.log_prob), wanted)


def test_every_word_is_tagged_whatever_the_batch(corpus, model):
    split, symbols = corpus.split("test"), corpus.symbols
    one, several = (tag(model, symbols, split.sentences, split.labels, batch_size=size) for size in (1, 7))
    for ours, theirs in zip(one.found, several.found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for part in ("probability", "log_prob"):
        np.testing.assert_allclose(
            np.concatenate(getattr(one, part)), np.concatenate(getattr(several, part)), rtol=1e-5
        )
    assert [len(found) for found in one.found] == split.lengths.tolist()
    labelled = one.labelling(split.labels)
    assert labelled.score.count == split.facts["tokens"]
    assert labelled.sentence.tolist() == np.repeat(np.arange(len(split)), split.lengths).tolist()


def test_probabilities_and_loss_are_those_of_the_network(corpus, model):
    split, symbols = corpus.split("test"), corpus.symbols
    found = tag(model, symbols, split.sentences, split.labels)
    words, right = torch.from_numpy(split.ids[3].astype(np.int64)).unsqueeze(1), split.labels[3]
    log_probs = model.tag_log_probs(words, torch.ones_like(words, dtype=torch.bool))[:, 0].detach()
    best = log_probs.clone()
    best[:, symbols.unknown_label] = -math.inf
    np.testing.assert_array_equal(found.found[3], best.argmax(-1))
    np.testing.assert_allclose(found.probability[3], best.max(-1).values.exp(), rtol=1e-5)
    np.testing.assert_allclose(found.log_prob[3], log_probs[np.arange(len(right)), right], rtol=1e-5)
    assert symbols.unknown_label not in np.concatenate(found.found)


def test_unknown_is_never_chosen(corpus, model):
    symbols = corpus.symbols
    with torch.no_grad():
        before = model.output.choice.bias.clone()
        model.output.choice.bias[symbols.unknown_label] = 50.0
    found = tag(model, symbols, [["fish", "p"]])
    with torch.no_grad():
        model.output.choice.bias.copy_(before)
    assert symbols.unknown_label not in found.found[0]


def test_the_training_loss_leaves_the_model_as_it_was(corpus, model):
    split, symbols = corpus.split("valid"), corpus.symbols
    model.train()
    first = training_loss(model, symbols, split, batch_size=3).nll
    assert model.training
    found = tag(model.eval(), symbols, split.sentences, split.labels)
    assert first == pytest.approx(found.labelling(split.labels).score.nll, rel=1e-5)
    assert first == pytest.approx(-np.concatenate(found.log_prob).mean(), rel=1e-5)


def test_parts_of_a_tagging_are_in_order():
    found = Tagging([np.array([1]), np.array([0, 2])], [np.zeros(1), np.zeros(2)], [np.zeros(1), np.ones(2)])
    labelled = found.labelling([np.array([1]), np.array([2, 2])])
    assert labelled.found.tolist() == [1, 0, 2]
    assert labelled.right.tolist() == [1, 2, 2]
    assert labelled.sentence.tolist() == [0, 1, 1]


def counted(found, right):
    f1, precision, recall = chunk_measures(found, right)
    sums = f1.statistics.sum(0)
    return tuple(sums.astype(int)), (f1.value, precision.value, recall.value)


def test_chunks_by_hand():
    """Of three chunks one is found whole; of the two others one has another end, one another type."""
    right = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "I-NP"]]
    found = [["B-NP", "I-NP", "O", "B-NP"], ["B-NP", "O"]]
    assert counted(found, right) == ((1, 3, 3), pytest.approx((100 / 3, 100 / 3, 100 / 3)))
    assert counted([["O"]], [["O"]]) == ((0, 0, 0), (0, 0, 0))
    sums, figures = counted([["B-A", "B-A", "I-A"]], [["B-A", "I-A", "I-A"]])
    assert sums == (0, 2, 1)
    assert figures == (0, 0, 0)


TAG = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])
PAIRS = st.lists(st.lists(st.tuples(TAG, TAG), min_size=1, max_size=8), min_size=1, max_size=3)


@given(PAIRS)
def test_chunks_are_counted_as_conlleval_does(pairs):
    """Also where an `I` stands after `O`, or after another type."""
    found, right = ([[one[side] for one in sentence] for sentence in pairs] for side in (0, 1))
    sums, figures = counted(found, right)
    assert sums == conlleval(found, right)
    assert figures == pytest.approx(
        (
            100 * 2 * sums[0] / max(1, sums[1] + sums[2]),
            100 * sums[0] / max(1, sums[1]),
            100 * sums[0] / max(1, sums[2]),
        )
    )


def test_other_forms_are_refused():
    with pytest.raises(UserError, match="the tag 'E-A' is none of B-TYPE, I-TYPE and O"):
        chunk_measures([["O"]], [["E-A"]])


def test_without_nervaluate(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "nervaluate", None)
    with pytest.raises(UserError, match=r"pip install 'elman\[tags\]'"):
        chunk_measures([["O"]], [["O"]])
