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


def started(choice, ours=OURS, theirs=THEIRS, encoder=LOOKUP, core=LSTM):
    """A model of `ours` that starts from one of `theirs`, its weights before, and that model."""
    recipe = config.Model(encoder=encoder, core=core, output=config.Output(choice=choice))
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


def test_the_columns_of_an_output_that_is_fed_back_are_mapped_word_by_word():
    for theirs in (THEIRS, Vocabulary(THEIRS.words[:6], THEIRS.counts[:6])):
        model, before, other = started(config.Flat(), theirs=theirs, core=config.Jordan(size=5))
        ours, columns = model.core.weight_ch, other.core.weight_ch
        for word, number in OURS.ids.items():
            there = theirs.ids.get(word)
            expected = before["core.weight_ch"][:, number] if there is None else columns[:, there]
            assert ours[:, number].equal(expected), word


def test_a_tree_takes_the_clusters_of_the_other_run_word_by_word():
    words = Vocabulary((*OURS.words, "k", "l", "m", "n"), (*OURS.counts, 1, 1, 1, 1))
    model, _, other = started(config.Tree(clusters=3, assignment="random"), ours=words)
    ours, theirs = model.output.choice, other.output.choice
    assert ours.cluster_weight.equal(theirs.cluster_weight)
    for word in set(words.ids) & set(THEIRS.ids):
        assert ours.cluster_of(torch.tensor(words.ids[word])) == theirs.cluster_of(torch.tensor(THEIRS.ids[word]))
    assert sorted(ours.order.tolist()) == list(range(12))
    assert max(ours.starts.diff()) <= 5
    twin, _, other = started(config.Tree(clusters=3, assignment="random"), theirs=OURS)
    assert twin.output.choice.order.equal(other.output.choice.order)


def test_no_cluster_is_left_empty():
    fewer = Vocabulary(OURS.words[:3], OURS.counts[:3])
    model, _, _ = started(config.Tree(clusters=3), ours=fewer)
    assert model.output.choice.starts.tolist() == [0, 1, 2, 3]


def test_another_number_of_clusters_is_refused_with_what_to_set():
    with pytest.raises(UserError, match=r"in 2 clusters, and here they would be in 3; add .*clusters=2"):
        started(config.Tree(), theirs=Vocabulary(THEIRS.words[:4], THEIRS.counts[:4]))


def test_gates_of_frequent_words_are_mapped_word_by_word():
    model, before, other = started(config.Mixtape(components=4, frequent=4, gate_size=2))
    assert model.output.choice.gate_word[4].equal(other.output.choice.gate_word[4])  # of all other words
    for name in ("gate_word", "gate_bias"):
        ours, theirs = (getattr(one.output.choice, name).view(5, -1) for one in (model, other))
        for word in OURS.words[:4]:
            there = THEIRS.ids.get(word)
            old = before[f"output.choice.{name}"].view(5, -1)[OURS.ids[word]]
            assert ours[OURS.ids[word]].equal(old if there is None else theirs[min(there, 4)]), word


def test_the_gate_of_all_other_words_is_no_gate_of_a_word():
    """The other run has a gate for each of its words: none of them is that of our rare ones."""
    model, before, _ = started(
        config.Mixtape(components=4, frequent=4, gate_size=2), theirs=Vocabulary(THEIRS.words[:4], THEIRS.counts[:4])
    )
    for name in ("gate_word", "gate_bias"):
        ours = getattr(model.output.choice, name)
        assert ours.view(5, -1)[4].equal(before[f"output.choice.{name}"].view(5, -1)[4])


def test_a_reservoir_that_is_not_learnt_is_that_of_the_other_run():
    torch.manual_seed(0)
    model, _, other = started(config.Flat(), core=config.Reservoir(size=6), theirs=OURS)
    assert all(one.equal(two) for one, two in zip(model.core.buffers(), other.core.buffers(), strict=True))


def test_a_layer_that_the_other_network_lacks_is_refused_and_a_gate_is_begun():
    def built(sizes, gate=None):
        output = config.Output(choice=config.Flat(), gate=gate)
        recipe = config.Model(encoder=LOOKUP, core=config.Stack(sizes=sizes), output=output)
        return networks.randomise(build_model(recipe, len(OURS), OURS.counts, OURS.words)).float()

    other = SimpleNamespace(model=built((8,)), vocabulary=OURS, path="run")
    with pytest.raises(UserError, match=r"core\.\S+ is missing there"):
        start_from(built((8, 8)), OURS.words, other)
    assert start_from(built((8,), config.InputGate(size=4)), OURS.words, other) == len(OURS)
