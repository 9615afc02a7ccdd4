"""The weights of a run in a model of another vocabulary: rows by what they stand for, all others as they are."""

from types import SimpleNamespace

import pytest
import torch

from elman import config
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.network.build import build_model
from elman.tasks.text.warm_start import start_from
from support import networks

OURS = Vocabulary(("cat", "dog", "emu", "<unk>", "<eos>", "a", "b", "c"), (9, 8, 7, 6, 5, 4, 3, 2))
THEIRS = Vocabulary(("dog", "<eos>", "cat", "<unk>", "gnu", "b", "x", "y"), (9, 8, 7, 6, 5, 4, 3, 2))
SHARED = [(OURS.ids[word], THEIRS.ids[word]) for word in ("cat", "dog", "<unk>", "<eos>", "b")]
LOOKUP = config.Lookup(size=8)
LSTM = config.Stack(sizes=(2, 8))
"""Its first layer has matrices of eight rows, as many as there are words."""


def started(choice, ours=OURS, theirs=THEIRS, encoder=LOOKUP):
    """A model of `ours` that starts from one of `theirs`, its weights before, and that model."""
    recipe = config.Model(encoder=encoder, core=LSTM, output=config.Output(choice=choice))
    made = [
        networks.randomise(build_model(recipe, len(words), words.counts, words.words)).float()
        for words in (ours, theirs)
    ]
    before = {name: parameter.clone() for name, parameter in made[0].named_parameters()}
    found = start_from(made[0], ours.words, SimpleNamespace(model=made[1], vocabulary=theirs, path="run"))
    assert found == len(set(ours.words) & set(theirs.words))
    return made[0], before, made[1]


def test_rows_that_are_as_many_as_words_but_stand_for_none_are_copied_as_they_are():
    model, before, other = started(config.Flat())
    theirs = dict(other.named_parameters())
    of_core = [name for name in theirs if name.startswith("core.")]
    assert any(theirs[name].shape[0] == len(OURS) for name in of_core)
    for name, parameter in model.named_parameters():
        if name in of_core:
            assert parameter.equal(theirs[name]), name
        elif name in ("encoder.weight", "output.choice.weight", "output.choice.bias"):
            for here, there in SHARED:
                assert parameter[here].equal(theirs[name][there])
            assert parameter[OURS.ids["emu"]].equal(before[name][OURS.ids["emu"]])


@pytest.mark.parametrize("words", [("dog", "<eos>", "cat"), ("dog", "<eos>", "cat", "<unk>", "gnu", "b")])
def test_a_tied_adaptive_softmax_is_mapped_word_by_word(words):
    smaller = Vocabulary(words, tuple(range(9, 9 - len(words), -1)))
    model, before, other = started(config.Adaptive(tied=True, bias=True, cutoffs=(2,)), theirs=smaller)
    ours, theirs = model.output.choice.bias, other.output.choice.bias
    assert ours[2].equal(theirs[2])  # the tail
    for word in OURS.words:
        at = OURS.ids[word] + (OURS.ids[word] >= 2)
        there = smaller.ids.get(word)
        expected = before["output.choice.bias"][at] if there is None else theirs[there + (there >= 2)]
        assert ours[at].equal(expected), word


@pytest.mark.parametrize("choice", [config.Adaptive(cutoffs=(2,)), config.RareClass(threshold=4)])
def test_rows_by_rank_are_refused_where_the_words_are_others(choice):
    with pytest.raises(UserError, match="rows are words by their rank"):
        started(choice)
    model, _, other = started(choice, theirs=OURS)
    assert all(a.equal(b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_letters_are_mapped_by_what_they_are():
    encoder = config.Characters(size=3, widths=(1,), filters=(8,))
    model, before, other = started(config.Flat(), encoder=encoder)
    ours, theirs = model.encoder, other.encoder
    for letter in "catdogemubxyn":
        if letter in ours.alphabet:
            number = ours.alphabet.spell(letter)[1]
            known = letter in theirs.alphabet
            expected = theirs.weight[theirs.alphabet.spell(letter)[1]] if known else before["encoder.weight"][number]
            assert ours.weight[number].equal(expected)
    assert torch.equal(ours.weight[:4], theirs.weight[:4])
