"""The rules from facts to proposals, by value."""

import numpy as np
import pytest

from elman import config
from elman.config.training import Exponential
from elman.data.kinds import Look, name_of
from elman.data.text.facts import TextFacts, facts_of
from elman.errors import UserError
from elman.kinds.music import proposal as music_proposal
from elman.kinds.music.midi import write_midi
from elman.kinds.music.record import MusicOptions
from elman.kinds.pairs import proposal as pairs_proposal
from elman.kinds.pairs.proposal import PairFacts
from elman.kinds.pairs.table import RawPair
from elman.kinds.series import proposal as series_proposal
from elman.kinds.tags import proposal as tags_proposal
from elman.kinds.trees import proposal as trees_proposal
from elman.tasks.proposal import choose, text, text_model
from elman.tasks.proposal.proposal import (
    Proposal,
    by_the_clock,
    changed,
    epochs_reason,
    epochs_that_fit,
    needed_epochs,
    setting,
)
from elman.tasks.proposal.proposal import (
    timed as in_so_many_minutes,
)
from elman.tasks.proposal.text_model import Extent

NOVEL = TextFacts(
    size=1_200_000,
    lines=20_000,
    blocks=3_000,
    longest=1e-4,
    wrapped=True,
    words=True,
    tokenised=False,
    unknown=False,
    ruby=False,
    tokens=250_000,
    types=15_000,
)


def data(**facts):
    return text.reading(NOVEL._replace(**facts)).load().data


def read(**facts):
    found = data(**facts)
    return found.tokenisation, found.eos, found.min_count, found.max_vocabulary


def test_prose_keeps_its_capitals_and_paragraphs():
    assert text.reading(NOVEL) == Proposal(
        "text/prose.toml",
        (),
        (
            "ordinary text: marks are split off words, capitals are kept",
            "wrapped prose: paragraphs end at blank lines",
        ),
    )
    assert not data().lowercase


@pytest.mark.parametrize("tokenisation", ["characters", "bytes", "words", "subwords"])
def test_a_text_is_read_in_characters_where_the_user_asks_for_them(tokenisation):
    settings = [f"data.tokenisation={tokenisation}"]
    facts = text.as_read(NOVEL, settings)
    found = text.reading(facts, given=settings)
    if tokenisation in ("words", "subwords"):
        assert facts == NOVEL
        return
    assert facts.tokens == NOVEL.size
    assert (found.recipe, found.load().data.tokenisation) == ("text/characters.toml", tokenisation)
    assert (found.load().data.eos, found.load().data.valid_fraction) == ("exact", 0.04)
    assert text.as_read(NOVEL, [f"data.tokenisation = '{tokenisation}'"]) == facts
    assert text.as_read(NOVEL, [f'data={{kind="text", tokenisation="{tokenisation}"}}']) == facts
    assert text.as_read(NOVEL, []) == text.as_read(NOVEL, [*settings, "data.tokenisation=raw"]) == NOVEL


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"wrapped": False}, ("raw", "line", 2, None)),
        ({"blocks": 3}, ("raw", "none", 2, None)),
        ({"lines": 1, "longest": 1.0, "wrapped": False}, ("raw", "none", 2, None)),
        ({"longest": 0.2}, ("raw", "none", 2, None)),
        ({"tokenised": True, "wrapped": False}, ("words", "line", 2, None)),
        ({"tokenised": True, "unknown": True}, ("words", "line", 1, None)),
        ({"tokens": 2_000_000}, ("raw", "paragraph", 3, 30_000)),
        ({"tokens": 60_000_000}, ("raw", "paragraph", 5, 30_000)),
        ({"words": False, "wrapped": False}, ("characters", "exact", 1, None)),
        ({"words": False, "lines": 2}, ("characters", "none", 1, None)),
    ],
)
def test_readings(facts, expected):
    assert read(**facts) == expected


def test_ruby_is_removed():
    assert data(words=False, ruby=True).ruby == "remove"
    assert data(words=False).ruby == "keep"


def test_no_more_is_held_out_than_an_evaluation_needs():
    found = data(tokens=10_000_000)
    assert (found.valid_fraction, found.test_fraction) == (0.005, 0.005)
    assert data().valid_fraction == 0.05
    assert [data(tokens=round(text.HELD_OUT / share)).valid_fraction for share in (0.08, 0.04)] == [0.05, 0.04]
    assert text.reading(NOVEL._replace(tokens=10_000_000), cut=False).load().data.valid_fraction == 0.05


@pytest.mark.parametrize(
    ("tokens", "epochs"), [(1_000, 40), (100_000, 19), (250_000, 12), (1_000_000, 6), (10_000_000, 2), (10**8, 1)]
)
def test_needed_epochs(tokens, epochs):
    assert text_model.needed_epochs(tokens) == epochs


def sized(tokens, minutes, per_second, words=True, symbols=4_000):
    """The size and the epochs for a machine whose epochs take time by their multiply-adds."""
    timed = []

    def speed(proposal):
        sizes = proposal.load().model.core.sizes
        timed.append(sizes)
        (size,) = (one for one in text_model.SIZES if (one.hidden, one.embedding) == sizes)
        return tokens * size.cost(extent.scored) / per_second / 60

    extent = Extent(tokens, symbols, words)
    recipe = text_model.sized(Proposal("text/prose.toml", (), ()), extent, minutes, speed).load()
    assert recipe.model.core.sizes in timed
    assert len(set(timed)) <= 2
    return recipe.model.core.sizes[0], recipe.training.epochs


@pytest.mark.parametrize(
    ("tokens", "words", "needed", "enough"),
    [
        (96_000, True, 19, 4.75),
        (250_000, True, 12, 3),
        (930_000, True, 6, 2),
        (4_000_000, True, 3, 1.5),
        (60_000_000, True, 1, 0.5),
        (750_000, False, 12, 2),
        (320_000, False, 18, 3),
    ],
)
def test_enough_epochs_are_a_quarter_of_the_needed_ones_of_characters_a_sixth(tokens, words, needed, enough):
    extent = Extent(tokens, 4_000, words)
    assert text_model.needed_epochs(extent.in_words) == needed
    assert [extent.enough_epochs(size) for size in text_model.SIZES] == [enough] * 3 + [needed / 2] * 3


@pytest.mark.parametrize(
    ("tokens", "minutes", "per_second", "expected"),
    [
        (250_000, 10, 1e11, (640, 12)),
        (250_000, 10, 2e10, (640, 7)),
        (250_000, 10, 1e10, (384, 9)),
        (250_000, 2, 2e10, (384, 3)),
        (250_000, 2, 1e10, (256, 3)),
        (250_000, 2, 1e8, (128, 1)),
        (20_000, 2, 1e10, (256, 40)),
        (5_000, 10, 4e9, (128, 40)),
        (6_000_000, 10, 1e13, (1280, 2)),
        (60_000_000, 10, 4e9, (128, 1)),
    ],
)
def test_the_largest_size_of_which_enough_epochs_fit(tokens, minutes, per_second, expected):
    assert sized(tokens, minutes, per_second) == expected


def proposed(tokens=250_000, per_epoch=0.001, symbols=10_000, words=True):
    """What is proposed for ten minutes where every size takes as long."""
    recipe = "text/prose.toml" if words else "text/characters.toml"
    return text_model.sized(Proposal(recipe, (), ()), Extent(tokens, symbols, words), 10, lambda _: per_epoch)


def test_a_large_vocabulary_has_an_adaptive_softmax_and_costs_as_much_as_a_quarter_of_it():
    adaptive = config.Adaptive(bias=True, tied=True)
    assert proposed(symbols=5_000).load().model.output.choice == adaptive
    assert "5,000 words: an adaptive softmax" in proposed(symbols=5_000).reasons
    assert proposed(symbols=4_999).load().model.output.choice == config.Flat(tied=True)
    assert proposed(symbols=6_000, words=False).load().model.output.choice.__class__ is config.Flat
    assert [sized(250_000, 2, 1e10, symbols=count) for count in (16_000, 4_000)] == [(256, 3)] * 2


def test_few_epochs_are_trained_without_dropout_and_penalties_at_a_higher_rate():
    recipe = proposed(per_epoch=4.0).load()
    core, encoder, training = recipe.model.core, recipe.model.encoder, recipe.training
    assert training.epochs == text_model.BRIEF == 2
    assert not any((core.output_dropout, core.weight_drop, core.between_dropout))
    assert not any((encoder.dropout, encoder.word_dropout))
    assert (training.penalties.ar, training.penalties.tar) == (0, 0)
    assert (training.optimiser.lr, training.schedule.warm_up) == (1.6e-2, 0.1)
    reason = "so few epochs: no dropout, a higher rate"
    assert [reason in " ".join(proposed(per_epoch=time).reasons) for time in (4.0, 2.5)] == [True, False]
    longer = proposed(per_epoch=2.5).load()
    assert longer.training.epochs == 3
    assert longer.model.core.output_dropout == round(0.5 * 1.4 * (3 / 12) ** 0.5, 2)
    assert longer.training.optimiser.lr == 5e-3


def mixing(single, mixed, tokens=900_000, given=(), growth=0.0, dropout=1.0):
    """What is proposed for ten minutes where an epoch takes so long with one softmax and with a mixture.

    So long it takes in layers of 256 units without dropout, in wider ones in proportion to their units to the power
    `growth`, and with dropout so many times as long.
    """

    def speed(proposal):
        model = proposal.load().model
        factor = (model.core.sizes[0] / 256) ** growth * (dropout if model.core.weight_drop else 1)
        return factor * (mixed if isinstance(model.output.contexts, config.Mixture) else single)

    own = Proposal("text/prose.toml").under(given)
    return text_model.sized(own, Extent(tokens, 10_000, words=True), 10, speed)


@pytest.mark.parametrize(
    ("single", "mixed", "epochs", "mixes"),
    [
        (0.1, 0.2, 6, True),
        (2.0, 2.6, 3, True),
        (2.0, 3.9, 2, True),
        (2.0, 4.1, 4, False),
        (4.0, 4.1, 2, False),
        (4.0, 4.0, 2, True),
    ],
)
def test_a_mixture_is_taken_where_two_epochs_of_it_fit(single, mixed, epochs, mixes):
    found = mixing(single, mixed)
    recipe = found.load()
    assert recipe.training.epochs == epochs
    contexts = recipe.model.output.contexts
    assert contexts == (config.Mixture({1: 1, 2: 1}, recipe.model.encoder.size) if mixes else config.Single())
    assert recipe.training.averaging == (config.Polynomial(power=3) if mixes else None)
    assert any("DOC" in reason for reason in found.reasons) == mixes


@pytest.mark.parametrize(
    ("single", "mixed", "units", "epochs", "mixes"),
    [
        (1.0, 1.6, 384, 3, True),  # 2.4 minutes each; three of 640 units would fit with one softmax
        (2.6, 3.6, 256, 2, True),  # one softmax of 384 units would take 3.9
        (3.9, 4.1, 128, 3, True),  # one of 256 units would fit
        (6.0, 9.0, 128, 2, False),
        (9.0, 10.0, 128, 1, True),
    ],
)
def test_a_mixture_comes_before_the_next_size(single, mixed, units, epochs, mixes):
    recipe = mixing(single, mixed, growth=1).load()
    assert (recipe.model.core.sizes[0], recipe.training.epochs) == (units, epochs)
    assert isinstance(recipe.model.output.contexts, config.Mixture) == mixes
    assert recipe.training.batch_size == 32


def test_one_softmax_is_not_timed_where_all_needed_epochs_of_a_mixture_fit():
    for tokens, epochs in ((900_000, 6), (60_000_000, 1)):
        found = mixing(None, 0.01, tokens=tokens, growth=1)  # the time of one softmax would be no number
        assert (found.load().training.epochs, found.load().model.core.sizes[0]) == (epochs, 640 if epochs > 1 else 1280)


def test_a_size_is_timed_as_it_would_be_trained():
    """Two epochs of 256 units fit only without dropout, with which they are not trained."""
    recipe = mixing(2.6, 3.7, growth=1, dropout=1.2).load()
    assert (recipe.model.core.sizes[0], recipe.training.epochs, recipe.model.core.weight_drop) == (256, 2, 0)


@pytest.mark.parametrize(("tokens", "columns"), [(99_999, 10), (100_000, 20), (499_999, 20), (500_000, 32)])
def test_longer_texts_are_cut_into_more_columns(tokens, columns):
    assert proposed(tokens=tokens).load().training.batch_size == columns
    assert proposed(tokens=3 * tokens, words=False).load().training.batch_size == min(20, columns)
    assert proposed(tokens=3_000_000, words=False).load().training.batch_size == 32


def test_the_rate_of_many_epochs_grows_with_the_columns():
    rates = [proposed(tokens=tokens, per_epoch=2.5).load().training.optimiser.lr for tokens in (499_999, 500_000)]
    assert rates == [5e-3, 8e-3]
    assert proposed(tokens=3_000_000, words=False, per_epoch=1.9).load().training.optimiser.lr == 5e-3


@pytest.mark.parametrize(("per_epoch", "epochs", "few"), [(4, 2, True), (1.1, 7, True), (1, 8, False)])
def test_characters_of_few_epochs_have_a_higher_rate_and_less_dropout(per_epoch, epochs, few):
    """Six tenths of the 12 epochs that are needed are few; dropout is half of that of words, and less with each."""
    found = proposed(tokens=750_000, words=False, per_epoch=per_epoch)
    core, encoder, training = found.load().model.core, found.load().model.encoder, found.load().training
    share = 0.5 * (epochs / 12) ** 0.5
    assert training.epochs == epochs
    assert (core.output_dropout, core.weight_drop) == (round(0.5 * share, 2), round(0.45 * share, 2))
    assert encoder.dropout == round(0.3 * share, 2)
    assert (training.optimiser.lr, training.optimiser.betas) == ((8.5e-3, (0, 0.99)) if few else (5e-3, (0.9, 0.999)))
    assert ("so few epochs: a higher rate" in found.reasons) == few


def test_a_mixture_needs_many_words():
    assert isinstance(mixing(0.1, 0.1, tokens=500_000).load().model.output.contexts, config.Mixture)
    assert isinstance(mixing(0.1, 0.1, tokens=499_999).load().model.output.contexts, config.Single)
    extent = Extent(500_000, 5_000, words=True)
    assert extent.mixes
    assert not extent._replace(symbols=4_999).mixes
    assert not extent._replace(words=False).mixes


def test_a_mixture_leaves_what_the_user_has_set():
    for own in (
        ['model.output.contexts={kind="mixture",size=320,heads={2=3}}'],
        ["model.core.sizes=[384,192]", "model.encoder.size=192"],
    ):
        found = mixing(0.1, 0.1, given=own)
        assert "DOC" not in " ".join(found.reasons)
        assert found.load().training.averaging is None
    own = ["training.averaging={kind='immediate'}"]
    assert mixing(0.1, 0.1, given=own).load().training.averaging == config.Immediate()
    own = ["training.epochs=3"]
    assert isinstance(mixing(2.0, 2.6, given=own).load().model.output.contexts, config.Mixture)
    assert isinstance(mixing(2.0, 2.7, given=own).load().model.output.contexts, config.Single)


@pytest.mark.parametrize(("tokens", "epochs"), [(250_000, 2), (8_000_000, 1)])
def test_few_epochs_are_timed_without_dropout(tokens, epochs):
    """Five minutes an epoch with dropout, so that one fits, and three without; 8 million tokens need two."""

    def speed(proposal):
        return 5.0 if proposal.load().model.core.weight_drop else 3.0

    found = text_model.sized(Proposal("text/prose.toml", (), ()), Extent(tokens, 10_000, words=True), 10, speed)
    assert found.load().training.epochs == epochs
    assert f"{epochs} epoch{'s' * (epochs > 1)} of 3 minutes" in " ".join(found.reasons)
    assert found.load().model.core.weight_drop == 0


def test_a_second_measurement_beside_other_work_does_not_make_training_longer():
    """Without dropout an epoch is not slower: of the two times the smaller counts."""
    times = iter([3.9, 4.2, 4.2, 4.2])
    recipe = text_model.sized(
        Proposal("text/prose.toml").under(["model.core.sizes=[256,128]", "model.encoder.size=128"]),
        Extent(900_000, 10_000, words=True),
        10,
        lambda _: next(times),
    ).load()
    assert recipe.training.epochs == 2


def test_epochs_and_layers_of_the_user_stay():
    layers = ["model.core.sizes=[500,100]", "model.encoder.size=100"]
    own = Proposal("text/prose.toml").under(["training.epochs=5", *layers, "training.epochs=1"])
    timed = []

    def speed(proposal):
        timed.append(proposal.load().model.core.sizes)
        return 0.001

    found = text_model.sized(own, Extent(250_000, 4_000, words=True), 10, speed)
    recipe = found.load()
    assert (recipe.model.core.sizes, recipe.training.epochs) == ((500, 100), 1)
    assert set(timed) == {(500, 100)}
    assert recipe.training.optimiser.lr == text_model.SIZES[3].brief_rate
    assert found.reasons[0].startswith("1 epoch of 0.06 seconds; 12 would be enough")
    assert not any("layers" in reason for reason in found.reasons)
    longer = Proposal("text/prose.toml").under(["training.epochs=40"])
    assert text_model.sized(longer, Extent(250_000, 4_000, words=True), 10, lambda _: 5.0).load().training.epochs == 40
    series = in_so_many_minutes(Proposal("series/table.toml").under(["training.epochs=7"]), 20, 10, lambda _: 0.1)
    assert series.load().training.epochs == 7
    assert series.reasons[0].startswith("7 epochs of ")


def test_a_reason_is_left_out_where_its_keys_are_set():
    found = text.reading(NOVEL, given=["data.eos = line"])
    assert found.reasons == ("ordinary text: marks are split off words, capitals are kept",)
    assert Proposal("x").under(["model.output={}"]).is_given("model.output.choice")
    assert not Proposal("x").under(["model.output={}"]).is_given("model.outputs")


def test_few_epochs_that_are_enough_are_no_reason_to_change_anything():
    assert (
        proposed(tokens=10_000_000, per_epoch=2.0).load().training.optimiser.lr
        == 3.2e-3
        == 1.6 * text_model.SIZES[-1].rate
    )


def test_three_characters_count_as_a_word():
    assert sized(750_000, 10, 3e11, words=False) == sized(250_000, 10, 1e11)


def dropouts(tokens, per_epoch=0.001, words=True):
    model = proposed(tokens, per_epoch, words=words).load().model
    core, encoder = model.core, model.encoder
    return core.output_dropout, core.weight_drop, core.between_dropout, encoder.dropout, encoder.word_dropout


def test_dropout_falls_with_the_length_of_the_text():
    assert [dropouts(tokens) for tokens in (49_999, 99_999, 499_999, 500_000, 5_000_000, 10**8)] == [
        (0.6, 0.6, 0.3, 0.4, 0.15),
        (0.55, 0.5, 0.25, 0.33, 0.12),
        (0.5, 0.45, 0.23, 0.3, 0.11),
        (0.2, 0.16, 0.08, 0.11, 0.04),
        (0.08, 0.08, 0.04, 0.05, 0.02),
        (0.0, 0.0, 0.0, 0.0, 0.0),
    ]
    assert dropouts(750_000, words=False) == (0.25, 0.23, 0.11, 0.15, 0.06)


def test_dropout_falls_with_the_epochs_that_do_not_fit():
    """Four of 12 and of six epochs fit, and six of 12 of characters; six of 12 are almost enough for all of it."""
    assert dropouts(250_000, per_epoch=2.0) == (0.4, 0.36, 0.18, 0.24, 0.09)
    assert dropouts(1_000_000, per_epoch=2.0) == (0.16, 0.13, 0.07, 0.09, 0.03)
    assert dropouts(750_000, per_epoch=1.3, words=False) == (0.18, 0.16, 0.08, 0.11, 0.04)
    assert dropouts(250_000, per_epoch=1.3) == (0.49, 0.45, 0.22, 0.3, 0.11)


def test_an_epoch_that_does_not_fit_is_said():
    assert epochs_reason(1, 30, 10, 2).startswith("an epoch takes 30 minutes: training may stop within the first")
    assert epochs_reason(4, 0.25, 2, 12) == "4 epochs of 15 seconds; 12 would be enough for data of this size"


@pytest.mark.parametrize(
    ("minutes", "per_epoch", "most", "epochs"), [(10, 1, 25, 8), (10, 0.1, 25, 25), (10, 100, 25, 1), (10, 1.5, 25, 5)]
)
def test_epochs_that_fit(minutes, per_epoch, most, epochs):
    assert epochs_that_fit(minutes, per_epoch, most) == epochs


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("data.eos", "none", "data.eos=none"),
        ("model.core.sizes", [384, 192], "model.core.sizes=[384,192]"),
        ("data.languages", ["ja", "en"], 'data.languages=["ja","en"]'),
        ("training.optimiser.lr", 2e-3, "training.optimiser.lr=0.002"),
    ],
)
def test_settings_are_read_back(key, value, line):
    assert setting(key, value) == line
    recipe = "translation/small-en-ja.toml" if "languages" in key else "text/prose.toml"
    loaded = config.load_recipe(config.toml.find(recipe), [line])
    assert changed(recipe, {key: value}) in ((), (line,))
    for name in key.split("."):
        loaded = getattr(loaded, name)
    assert (list(loaded) if isinstance(loaded, tuple) else loaded) == value


def test_pairs():
    pairs = [RawPair("the cat , it said , sat there .", "cat sat")] * 100
    facts = pairs_proposal.pair_facts(pairs)
    assert facts == PairFacts(100, 9.0, 2.0, words=True, tokenised=True)
    found = Look("pairs", "", frozenset(), form="tsv")
    recipe = pairs_proposal.of_pairs(facts, found, cut=True).load()
    assert (recipe.data.measures, recipe.data.tokenisation, recipe.data.valid) == ("headlines", "words", 5)
    even = facts._replace(target=7.0, tokenised=False)
    recipe = pairs_proposal.of_pairs(even, found._replace(form="parallel", languages=("de", "fr")), cut=False).load()
    assert (recipe.data.measures, recipe.data.languages, recipe.data.tokenisation) == (
        "translation",
        ("de", "fr"),
        "raw",
    )
    recipe = trees_proposal.of_trees(100, cut=True).load()
    assert (recipe.kind, recipe.data.test) == ("trees", 5)
    assert trees_proposal.of_trees(100, cut=False).settings == ()
    tagger = tags_proposal.of_tags("conllu", 100, cut=True)
    recipe = tagger.load()
    assert (recipe.kind, recipe.data.form, recipe.data.test) == ("tags", "conllu", 5)
    assert "tags are UPOS" in tagger.reasons[0]
    assert tags_proposal.of_tags("columns", 100, cut=False).settings == ("data.form=columns",)


@pytest.mark.parametrize(
    ("rows", "columns", "length", "units"),
    [(100_000, 8, 50, 64), (2000, 4, 50, 64), (1000, 4, 50, 64), (999, 2, 50, 32), (200, 2, 25, 32), (10, 2, 1, 32)],
)
def test_series(rows, columns, length, units):
    recipe = series_proposal.fitted(Proposal("series/table.toml"), {"tokens": rows}).load()
    assert (recipe.training.batch_size, recipe.training.window.length) == (columns, length)
    assert recipe.model.core.sizes == (units,)
    averaging = recipe.training.averaging
    assert averaging is None if units == 64 else averaging == Exponential(decay=0.99)


def test_music_that_is_lower_than_a_piano(tmp_path):
    for name, pitch in (("low", 12), ("piano", 30)):
        roll = np.zeros((40, 93), np.uint8)
        roll[::3, pitch - 1] = 1
        write_midi(tmp_path / f"{name}.mid", roll, MusicOptions(pitches=93))
    ranges = [music_proposal.of_music(pitches) for pitches in (88, 93)]
    found = [choose.opened(ranges, str(tmp_path / f"{name}.mid"))[0] for name in ("low", "piano")]
    assert [proposal.load().data.pitches for proposal in found] == [93, 88]
    (tmp_path / "low.mid").write_bytes(b"MThd")
    with pytest.raises(UserError, match="not a readable MIDI file"):
        choose.opened(ranges, str(tmp_path / "low.mid"))


def test_music_and_epochs_by_size():
    assert [music_proposal.of_music(pitches).load().data.pitches for pitches in (88, 93)] == [88, 93]
    batches = [
        music_proposal.fitted(music_proposal.of_music(88), {"pieces": pieces}).load().training.batch_size
        for pieces in (1, 9, 500)
    ]
    assert batches == [1, 9, 16]
    assert [needed_epochs(size, *music_proposal.USUAL) for size in (1000, 176_000, 10**8)] == [100, 30, 2]
    assert in_so_many_minutes(music_proposal.of_music(88), 30, 10, lambda _: 1.0).load().training.epochs == 8


def test_the_loss_at_the_end_of_a_text_is_predicted():
    extent = Extent(250_000, 4_000, words=True)
    found = text_model.sized(Proposal("text/prose.toml"), extent, 10, lambda _: 1.0)
    assert found.load().training.predict_loss
    assert found.reasons[-1] == "after an eighth and a quarter of the steps the loss at the end is predicted"
    refused = Proposal("text/prose.toml").under(["training.predict_loss=false"])
    silent = text_model.sized(refused, extent, 10, lambda _: 1.0)
    assert not silent.load().training.predict_loss
    assert "predicted" not in " ".join(silent.reasons)


@pytest.mark.parametrize(("tokens", "needed", "epochs"), [(4_000_000, 3, 2), (9_000_000, 2, 1), (1_000_000, 6, 2)])
def test_training_without_dropout_stays_below_the_epochs_that_are_needed(tokens, needed, epochs):
    """An epoch takes 6 of 10 minutes with dropout, and half a minute without."""

    def speed(proposal):
        return 6.0 if proposal.load().training.penalties.ar else 0.5

    assert text_model.needed_epochs(tokens) == needed
    extent = Extent(tokens, 10_000, words=True)
    own = Proposal("text/prose.toml").under(["model.core.sizes=[256,128]", "model.encoder.size=128"])
    assert text_model.sized(own, extent, 10, speed).load().training.epochs == epochs


@pytest.mark.parametrize("name", ["ptb", "nottingham", "mackey-glass", "cmudict"])
def test_a_known_name_is_looked_for_as_its_kind_is_kept(name, monkeypatch, tmp_path):
    kept = {"ptb": "corpus.json", "nottingham": "rolls.npz", "mackey-glass": "series.csv", "cmudict": "train.tsv"}
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    folder = tmp_path / "corpora" / name
    folder.mkdir(parents=True)
    (folder / kept[name]).touch()
    monkeypatch.setattr(choose, "look", lambda path: Look("text", path.name, ()))
    _, found = choose._look(name)
    assert found == (folder / kept[name] if name in ("nottingham", "mackey-glass") else folder)


@pytest.mark.parametrize(("per_epoch", "largest"), [(0.8, True), (0.81, False)])
def test_a_size_of_which_just_enough_epochs_fit_is_taken(per_epoch, largest):
    """Of 40 epochs a quarter is enough: ten times .8 are the 8 of 10 minutes that there are for training."""
    timed = []

    def speed(proposal):
        timed.append(proposal.load().model.core.sizes[0])
        return per_epoch

    found = text_model.sized(Proposal("text/prose.toml"), Extent(20_000, 4_000, words=True), 10, speed).load()
    assert (found.model.core.sizes[0] > min(size.hidden for size in text_model.SIZES)) == largest


@pytest.mark.parametrize(
    ("epochs", "most", "spent", "left", "chosen"),
    [(3, 40, 1.0, 8.5, 12), (3, 7, 1.0, 8.5, 7), (9, 4, 0.0, 9.5, 9), (2, 40, 6.0, 5.0, 8), (6, 40, 1.0, 8.5, 24)],
)
def test_training_by_the_clock(epochs, most, spent, left, chosen):
    """A share of the minutes is kept for the evaluation, half of them at least are left; four times as many epochs."""
    timed = Proposal("text/prose.toml").adding([f"training.epochs={epochs}"])
    for by_validation in (True, False):
        training = by_the_clock(timed, most, 10, spent, ended_by_validation=by_validation).load().training
        assert (training.minutes, training.epochs) == (left, chosen)
        usual = timed.load().training.patience
        assert training.patience == (max(3, -(-chosen // 4)) if by_validation else usual)
    own = Proposal("text/prose.toml").under(["training.epochs=5"])
    found = by_the_clock(own, most, 10, spent)
    assert (found.load().training.epochs, found.load().training.patience) == (5, own.load().training.patience)
    assert "the rate falls with the clock: at the latest after " in found.reasons[-1]
    assert "quarter of the epochs" not in found.reasons[-1]


def test_what_other_sizes_take_is_foreseen_by_their_cost():
    """The next size would take a hundredth too much, which the time of the first one tells."""
    extent, timed = Extent(300_000, 10_000, words=True), []
    first, second = text_model.SIZES[2:4]

    def speed(proposal):
        timed.append(tuple(proposal.load().model.core.sizes))
        (size,) = (one for one in text_model.SIZES if (one.hidden, one.embedding) == timed[-1])
        return size.cost(10_000 / 4) / second.cost(10_000 / 4)

    for spare, wanted in ((0.99, [first]), (1.01, [first, second])):
        minutes = spare * extent.enough_epochs(second) / text_model.SHARE
        found = text_model.sized(Proposal("text/prose.toml"), extent, minutes, speed).load()
        assert tuple(found.model.core.sizes) == (wanted[-1].hidden, wanted[-1].embedding)
        assert timed == [(size.hidden, size.embedding) for size in wanted]
        timed.clear()


@pytest.mark.parametrize(("tokens", "place"), [(20_000, 1), (50_000, 2), (150_000, 3), (1_000_000, 4), (5_000_000, 5)])
def test_sizes_need_so_many_words(tokens, place):
    for words, wanted in ((tokens, place), (tokens - 1, place - 1)):
        found = text_model.sized(Proposal("text/prose.toml"), Extent(words, 4_000, words=True), 10, lambda _: 1e-9)
        assert found.load().model.core.sizes[0] == text_model.SIZES[wanted].hidden


def test_words_that_mostly_occur_once_are_read_as_characters():
    facts = facts_of("\n".join(f"name{number}" for number in range(200)), 2000)
    read = text.as_read(facts, [])
    assert read.words is False
    proposed = text.reading(read)
    assert (proposed.recipe, proposed.reasons[0]) == ("text/characters.toml", "most words occur once: characters")
    assert text.as_read(facts, ["data.tokenisation=raw"]).words  # as the user asks


def test_labels_before_their_texts_are_no_sources(tmp_path):
    (tmp_path / "labels.tsv").write_text("".join(f"{'good' if n % 3 else 'bad'}\ttext {n}\n" for n in range(100)))
    with pytest.raises(
        UserError, match="100 pairs have 2 sources, such as 'bad': they are labels; give the text in the"
    ):
        pairs_proposal.proposals(Look("pairs", "", frozenset(), form="tsv"), tmp_path / "labels.tsv")


def test_data_of_a_pattern_are_called_after_their_folder(tmp_path):
    (tmp_path / "news").mkdir()
    assert name_of(tmp_path / "news" / "*.txt.gz") == name_of(tmp_path / "news") == "news"
    (tmp_path / "a[1].txt").write_text("x")
    assert name_of(tmp_path / "a[1].txt") == "a[1]"
