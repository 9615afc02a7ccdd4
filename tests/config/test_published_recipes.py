"""The recipes of papers: every row of their tables, with its published size and the settings that its source states."""

import msgspec
import pytest
import torch

from elman import config
from elman.config.text import TextOptions
from elman.learning.progress import rate
from elman.network.build import build_model
from elman.network.output.input_gate import is_of_gate
from support.recipes import FUNCTIONS, MUSIC, PAPER, RECIPES, WORDS, differences, num_parameters

TEXT = {
    "one-billion-word": TextOptions(min_count=3),
    "ptb-characters": TextOptions(tokenisation="characters", eos="exact"),
    "enwik8": TextOptions(tokenisation="bytes", eos="exact"),
    "text8": TextOptions(tokenisation="characters", eos="none"),
}

DOC_TABLES = {
    "ptb": [
        "zaremba-medium", "zaremba-large", "variational-lstm-medium", "variational-lstm-large", "awd-lstm",
        "awd-lstm-mos", "awd-lstm-mos-20", "awd-lstm-doc", "awd-lstm-doc-15-0-0-5", "awd-lstm-doc-15-0-5-0",
        "awd-lstm-doc-15-5-0-0", "awd-lstm-doc-10-5-0-5", "awd-lstm-doc-10-5-5-0", "variational-rhn",
        "variational-rhn-iog", "skip-lstm",
    ],
    "wikitext-2": ["awd-lstm", "awd-lstm-mos", "awd-lstm-doc", "skip-lstm", "variational-lstm-iog"],
}  # fmt: skip
MIXTURES = {"mor": "relu", "mosig": "sigmoid", "mosp": "softplus", "moss": "sigsoftmax"}
PUBLISHED_SIZES = {
    "ptb/awd-lstm": 24_221_600,
    "ptb/awd-lstm-mos": 21_500_620,
    "ptb/awd-lstm-mos-20": 22_373_120,
    "ptb/awd-lstm-doc": 22_849_120,
    "ptb/awd-lstm-doc-15-5-0-0": 22_849_120,
    "ptb/awd-lstm-doc-15-0-0-5": 21_897_120,
    "ptb/awd-lstm-doc-15-0-5-0": 22_849_120,
    "ptb/awd-lstm-doc-10-5-0-5": 22_373_120,
    "ptb/awd-lstm-doc-10-5-5-0": 23_325_120,
    "ptb/char-small": 5_310_100,
    "ptb/char-large": 19_367_950,
    "ptb/zaremba-medium": 19_775_200,
    "ptb/zaremba-large": 66_022_000,
    "ptb/variational-rhn": 32_082_040,
    "ptb/variational-rhn-tied": 23_482_400,
    "ptb/variational-rhn-iog": 23_182_040 + 2 * 300 * 10_000 + 10_000,
    "wikitext-2/variational-lstm-iog": 50_059_878 + 2 * 300 * 33_278 + 33_278,
    "wikitext-2/awd-lstm": 33_556_078,
    "wikitext-2/awd-lstm-mos": 34_909_528,
    "wikitext-2/awd-lstm-doc": 36_639_278,
}


def test_recipes_of_papers_have_the_published_size():
    assert {name: num_parameters(name) for name in PUBLISHED_SIZES} == PUBLISHED_SIZES
    assert {name: RECIPES[name].expected.parameters for name in PUBLISHED_SIZES} == PUBLISHED_SIZES


def test_two_biases_a_gate_make_the_sizes_of_zarembas_code():
    for name, size in {"medium": 19_780_400, "large": 66_034_000}.items():
        recipe = RECIPES[f"ptb/zaremba-{name}"].model
        recipe = msgspec.structs.replace(recipe, core=msgspec.structs.replace(recipe.core, biases=2))
        with torch.device("meta"):
            assert sum(parameter.numel() for parameter in build_model(recipe, 10_000).parameters()) == size


def test_paper_scale_says_where_it_comes_from():
    for name in PAPER:
        recipe = RECIPES[name]
        corpus = name.split("/")[0]
        assert recipe.citation, name
        assert recipe.notes, name
        assert recipe.data.corpus == corpus
        assert recipe.data.options == TEXT.get(corpus, TextOptions(vocabulary_from="all")), name
        assert recipe.data.evaluation.skip_first == (corpus not in TEXT), name
        if name != "ptb/bengio-window":
            expected = recipe.expected
            assert expected is not None, name
            assert expected.source, name
            if corpus in DOC_TABLES and not name.startswith("ptb/char-"):
                test, valid = expected.test or expected.fine_tuned_test, expected.valid or expected.fine_tuned_valid
                assert test < valid, name


@pytest.mark.parametrize(
    "name",
    [
        "ptb/gru-constrained",
        "wikitext-2/gru-constrained",
        "reproduce/small-gru-constrained",
    ],
)
def test_the_constrained_gru_starts_as_in_the_thesis(name):
    """No biases, W_hh orthogonal and the other matrices N(0, 1/n), word vectors times 0.01, sums over steps."""
    recipe = RECIPES[name]
    torch.manual_seed(0)
    model = build_model(recipe.model, 50)
    (layer,) = model.core.layers
    size = layer.hidden_size
    block = layer.weight_hh[2 * size :]
    torch.testing.assert_close(block @ block.t(), torch.eye(size), atol=1e-4, rtol=0)
    for matrix in (layer.weight_hh[:size], layer.weight_ih, model.encoder.weight, model.output.choice.weight):
        assert matrix.std().item() == pytest.approx(size**-0.5, rel=0.05)
    assert layer.bias_ih is None
    assert model.encoder.scale == 0.01
    assert (recipe.training.loss, recipe.training.clip, recipe.training.constraint.delta) == ("sum", None, 0.2)


def test_small_constrained_grus_differ_from_the_thesis_in_scale_and_rate_alone():
    """With vectors times 0.01 they stay at the frequencies of words; the clipped twin keeps the rate of the thesis."""
    names = ("gru-constrained", "small-gru-constrained", "small-gru-clipped")
    paper, small, clipped = (RECIPES[f"ptb/{name}"] for name in names)
    assert [one.model.encoder.scale for one in (paper, small, clipped)] == [0.01, 0.1, 0.1]
    assert [one.training.optimiser.lr for one in (paper, small, clipped)] == [1.0, 0.3, 1.0]
    assert small.model.initialisation == clipped.model.initialisation == paper.model.initialisation
    assert (small.training.loss, small.training.clip) == (paper.training.loss, None)
    assert small.training.constraint == paper.training.constraint
    assert clipped.training.constraint is None


def test_music_says_where_it_comes_from():
    for name in sorted(MUSIC):
        recipe = RECIPES[name]
        assert name.startswith(("music/", "reproduce/"))
        assert recipe.citation, name
        assert recipe.notes, name
        assert (recipe.data.corpus, recipe.data.pitches) == ("nottingham", 93), name


def test_music_of_the_thesis():
    recipe = RECIPES["music/nottingham-gru"]
    gru = 3 * (200 * 200 + 200 * 200)
    assert num_parameters("music/nottingham-gru") == 93 * 200 + 2 * gru + 93 * 200 + 93
    assert (recipe.training.loss, recipe.training.batch_size, recipe.training.window.length) == ("sum", 20, 35)


@pytest.mark.parametrize("name", ["music/nottingham-gru", "music/nottingham-gru-constrained"])
def test_music_of_the_thesis_starts_as_its_notes_say(name):
    """Every recurrent matrix orthogonal, the others N(0, 1/200), vectors of notes times 0.01."""
    torch.manual_seed(0)
    model = build_model(RECIPES[name].model, 93)
    for layer in model.core.layers:
        for gate in layer.weight_hh.split(200):
            torch.testing.assert_close(gate @ gate.t(), torch.eye(200), atol=1e-4, rtol=0)
        assert layer.weight_ih.std().item() == pytest.approx(200**-0.5, rel=0.02)
    vectors = next(parameter for parameter in model.encoder.parameters() if parameter.ndim == 2)
    assert model.encoder.scale * vectors.std().item() == pytest.approx((1e-4 / 200) ** 0.5, rel=0.02)


@pytest.mark.parametrize("function", ["softmax", "sigsoftmax"])
def test_one_billion_word_halves_its_rate_after_the_second_epoch(function):
    """Thesis 4.6: from the second epoch on the rate is divided by 2 after each epoch."""
    training = RECIPES[f"one-billion-word/adaptive-{function}"].training
    rates = [rate(training.schedule, training.optimiser.lr, epoch, training.epochs, []) for epoch in range(5)]
    assert rates == [20, 20, 10, 5, 2.5]


@pytest.mark.parametrize("corpus", DOC_TABLES)
def test_mixtures_have_seventeen_tensors(corpus):
    """By which docs/evaluation.md divides the decay of the published dynamic evaluation of mixtures."""
    with torch.device("meta"):
        assert len(list(build_model(RECIPES[f"{corpus}/awd-lstm-mos"].model, 50).parameters())) == 17


def test_every_row_of_the_tables_is_there():
    rows = {f"{corpus}/{name}" for corpus, names in DOC_TABLES.items() for name in names}
    rows |= {f"{corpus}/awd-lstm-{name}" for corpus in DOC_TABLES for name in [*FUNCTIONS, *MIXTURES]}
    rows |= {f"{corpus}/awd-lstm-mos-thesis" for corpus in DOC_TABLES}
    rows |= {f"one-billion-word/adaptive-{name}" for name in ("softmax", "sigsoftmax")}
    rows |= {f"{corpus}/gru-{kind}" for corpus in DOC_TABLES for kind in ("constrained", "clipped")}
    rows |= {f"{corpus}/gru-delta-{delta}" for corpus in DOC_TABLES for delta in (0.5, 0.8, 1.1, 1.4)} | {
        "ptb/gru-clip-10"
    }
    rows |= {f"ptb/char-{size}{twin}" for size in ("small", "large") for twin in ("", "-word-twin")}
    rows |= {"ptb-characters/awd-lstm", "enwik8/awd-lstm", "text8/lstm-softmax", "text8/lstm-sigsoftmax"}
    assert rows | {"ptb/bengio-window", "ptb/variational-rhn-tied", "ptb/mogrifier"} == set(PAPER)


@pytest.mark.parametrize("corpus", DOC_TABLES)
def test_output_functions_differ_from_awd_lstm_in_nothing_else(corpus):
    epochs = {"training.epochs", "training.fine_tune.epochs"}
    for function in FUNCTIONS:
        changed = differences(f"{corpus}/awd-lstm-{function}", f"{corpus}/awd-lstm")
        assert changed - epochs == (set() if function == "softmax" else {"model.output.activation"})
        assert RECIPES[f"{corpus}/awd-lstm-{function}"].model.output.activation == function


@pytest.mark.parametrize("corpus", DOC_TABLES)
def test_the_mixture_of_the_thesis_differs_from_that_of_yang_in_two_dropouts(corpus):
    """Thesis 4.4.2: 0.30 on contexts where the code of Yang et al. has 0.29, and 0.225 between layers."""
    thesis = RECIPES[f"{corpus}/awd-lstm-mos-thesis"]
    assert (thesis.model.output.contexts.dropout, thesis.model.core.between_dropout) == (0.3, 0.225)
    assert RECIPES[f"{corpus}/awd-lstm-mos"].model.output.contexts.dropout == 0.29
    changed = differences(f"{corpus}/awd-lstm-mos-thesis", f"{corpus}/awd-lstm-mos")
    assert changed <= {"model.output.contexts.dropout", "model.core.between_dropout"}


@pytest.mark.parametrize("corpus", DOC_TABLES)
def test_mixtures_of_the_thesis_differ_in_their_function_alone(corpus):
    for name, function in MIXTURES.items():
        changed = differences(f"{corpus}/awd-lstm-{name}", f"{corpus}/awd-lstm-mos-thesis")
        assert changed <= {"model.output.activation", "model.output.contexts.prior"}
        output = RECIPES[f"{corpus}/awd-lstm-{name}"].model.output
        assert output.activation == function
        assert output.contexts.prior == ("same" if name == "moss" else "softmax")


@pytest.mark.parametrize("name", [name for name in DOC_TABLES["ptb"] if name.startswith("awd-lstm-doc-")])
def test_names_of_doc_rows_are_their_heads(name):
    i3, i2, i1, i0 = map(int, name.removeprefix("awd-lstm-doc-").split("-"))
    heads = RECIPES[f"ptb/{name}"].model.output.contexts.heads
    assert heads == {level: count for level, count in {0: i0, 1: i1, 2: i2, 3: i3}.items() if count}
    changed = differences(f"ptb/{name}", "ptb/awd-lstm-doc")
    assert {key.split(".heads")[0] for key in changed} <= {
        "model.output.contexts",
        "training.penalties.balance",
    }


def test_biases_of_contexts_begin_as_in_the_published_code():
    """Those of direct output connections at 0, those of mixtures of softmaxes as their weights (and so every other)."""
    rules = {name: recipe.model.initialisation.contexts_bias for name, recipe in RECIPES.items()}
    ours = {name for name, rule in rules.items() if rule is not None}
    assert ours == {name for name in PAPER if "awd-lstm-doc" in name}
    assert all(rules[name] == config.Zeros() for name in ours)


@pytest.mark.parametrize("name", ["ptb/skip-lstm", "wikitext-2/skip-lstm", "ptb/mogrifier"])
def test_models_of_melis_use_their_budget(name):
    """The papers say 24M; the widths follow from it."""
    assert 23.9e6 < num_parameters(name) <= 24e6


def test_a_highway_network_counts_as_zilly_does():
    """The input enters at the first depth only, and every gate has one bias."""
    embedding, size, depth = 10_000 * 830 + 10_000, 830, 10
    assert num_parameters("ptb/variational-rhn-tied") == embedding + 2 * size * size * (1 + depth) + 2 * size * depth


@pytest.mark.parametrize(
    ("name", "before", "millions"),
    [
        ("ptb/variational-rhn-iog", "ptb/variational-rhn", (23, 29)),
        ("wikitext-2/variational-lstm-iog", "ptb/variational-lstm-medium", (50, 70)),
    ],
)
def test_an_input_to_output_gate_is_trained_alone_on_the_network_of_the_row_before(name, before, millions):
    """Takase et al. 2017: its own vectors of 300 numbers and a gate for each logit make the sizes of both tables."""
    recipe, first = RECIPES[name], RECIPES[before]
    assert recipe.model.output.gate == config.InputGate(size=300, dropout=0.5, alone=True)
    with torch.device("meta"):
        gated = build_model(recipe.model, WORDS[name.split("/")[0]])
    sizes = {True: 0, False: 0}
    for parameter, tensor in gated.named_parameters():
        sizes[is_of_gate(parameter)] += tensor.numel()
    assert (round(sizes[False] / 1e6), round(sum(sizes.values()) / 1e6)) == millions
    dropouts = [key for key in config.flatten(msgspec.to_builtins(recipe.model, str_keys=True)) if "dropout" in key[0]]
    assert all(value == 0.0 or key.startswith("output.gate") for key, value in dropouts)
    changed = {key for key in differences(name, before) if "dropout" not in key}
    told = {"data.corpus", "model.output.choice.tied", "model.initialisation.embedding.bound"}
    told |= {"model.core.gate_masks"}
    told |= {"model.initialisation.output.bound", "training.epochs", "training.clip", "training.weight_decay"}
    assert {key for key in changed if not key.startswith(("model.output.gate", "training.optimiser"))} <= told | {
        "training.schedule.after",
        "training.schedule.factor",
    }
    assert first.model.output.gate is None
