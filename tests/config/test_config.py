"""The recipe's language: what it reads, what it writes, and every complaint by its exact text."""

from types import NoneType
from typing import get_args, get_type_hints

import msgspec
import pytest

from elman import config
from elman.config.errors import _allowed
from elman.config.parts import allowed, members
from elman.errors import UserError
from elman.formats import parse_toml
from elman.network.build import build_model
from elman.network.output.activation import ACTIVATIONS as TABLE
from support import text_runs

TOML = """\
title = "small"
[data]
kind = "text"
tokenisation = "words"
[model]
encoder = { kind = "lookup", size = 4 }
core = { kind = "stack", sizes = [5, 4], cell = { kind = "lstm" } }
[model.output]
contexts = { kind = "mixture", heads = { 1 = 1, 2 = 2 }, size = 4 }
choice = { kind = "flat", tied = true }
[training]
epochs = 2
optimiser = { kind = "adam", lr = 0.01 }
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(TOML)
    return path


def complaint(path, *settings):
    with pytest.raises(UserError) as caught:
        config.load_recipe(path, list(settings))
    line = str(caught.value)
    assert "\n" not in line
    return line


def tags(union):
    """The kinds of a union or a family of records, as its registry has them."""
    records = members(union).values() if isinstance(union, type) else get_args(union)
    return [f'"{record.__struct_config__.tag}"' for record in records if record is not NoneType]


def one_of(names):
    return f"write one of {', '.join(names)}"


def table_of(union):
    return f"write a table with kind = {' or '.join(tags(union))}"


def keys_of(record):
    tag = record.__struct_config__.tag_field
    return f"here one may write {', '.join([*([tag] if tag else []), *record.__struct_encode_fields__])}"


OPTIMISERS, AVERAGES = config.Optimiser, get_type_hints(config.Training)["averaging"]
ACTIVATIONS = [f'"{name}"' for name in TABLE]

SETTINGS = [
    (
        "foo=1",
        f"unknown key foo; {keys_of(config.Recipe)}",
    ),
    (
        "model.core.cell.size=1",
        f"unknown key model.core.cell.size; {keys_of(config.LSTM)}",
    ),
    (
        "training.optimiser.momentum=0.9",
        f"unknown key training.optimiser.momentum; {keys_of(config.Adam)}",
    ),
    (
        "training.window.size=35",
        f"unknown key training.window.size; {keys_of(config.Window)}",
    ),
    ("training.epochs=two", 'training.epochs = "two"; write a whole number of 1 or more'),
    ("training.epochs=1.5", "training.epochs = 1.5; write a whole number of 1 or more"),
    ("training.epochs=true", "training.epochs = true; write a whole number of 1 or more"),
    ("training.epochs=0", "training.epochs = 0; write a whole number of 1 or more"),
    ("training.clip=-1", "training.clip = -1; write a number above 0"),
    ("training.clip=no", 'training.clip = "no"; write a number above 0'),
    ("training.window.random=yes", 'training.window.random = "yes"; write true or false'),
    (
        "training.optimiser=3",
        f"training.optimiser = 3; {table_of(OPTIMISERS)}",
    ),
    ("training.fine_tune=true", "training.fine_tune = true; write a table ({ key = value, ... })"),
    (
        "training.averaging=nt",
        f'training.averaging = "nt"; {table_of(AVERAGES)}',
    ),
    (
        "training.optimiser.kind=adagrad",
        f'training.optimiser.kind = "adagrad"; {one_of(tags(OPTIMISERS))}',
    ),
    ("training.optimiser.kind=3", f"training.optimiser.kind = 3; {one_of(tags(OPTIMISERS))}"),
    (
        "training.optimiser.betas=[0.9]",
        "training.optimiser.betas = [0.9]; write a list [...] of 2, each a number of 0 or more and below 1",
    ),
    (
        "training.optimiser.betas=[0.9, 1]",
        "training.optimiser.betas[1] = 1; write a number of 0 or more and below 1",
    ),
    (
        "training.fine_tune.lr=1.0",
        "the key training.fine_tune.epochs is missing; write a whole number of 1 or more",
    ),
    ("training.penalties.ar=nan", "training.penalties.ar = nan; write a number of 0 or more"),
    ("model.encoder.kind=cnn", f'model.encoder.kind = "cnn"; {one_of(tags(config.Encoder))}'),
    ("model.encoder.dropout=1", "model.encoder.dropout = 1; write a number of 0 or more and below 1"),
    ("model.core.cell.kind=rnn", f'model.core.cell.kind = "rnn"; {one_of(tags(config.Cell))}'),
    ("model.core.cell={}", f"the key model.core.cell.kind is missing; {one_of(tags(config.Cell))}"),
    (
        "model.core.sizes=[]",
        "model.core.sizes = []; write a list [...] with 1 or more, each a whole number of 1 or more",
    ),
    (
        "model.core.sizes=[4, four]",
        'model.core.sizes = "[4, four]"; write a list [...] with 1 or more, each a whole number of 1 or more',
    ),
    ("model.core.sizes=[4, 'b']", 'model.core.sizes[1] = "b"; write a whole number of 1 or more'),
    ("model.core.biases=3", "model.core.biases = 3; write one of 0, 1, 2"),
    (
        "model.output.activation=tanh",
        f'model.output.activation = "tanh"; {one_of(ACTIVATIONS)}',
    ),
    (
        "model.output.contexts.heads=3",
        "model.output.contexts.heads = 3; write a table from a whole number to a whole number of 1 or more",
    ),
    (
        "model.output.contexts.heads.2=0",
        "model.output.contexts.heads.2 = 0; write a whole number of 1 or more",
    ),
    ("model.output.contexts.heads.top=1", "model.output.contexts.heads: the key top is not a whole number"),
    ("model.output.contexts.heads.03=1", "model.output.contexts.heads: the key 03 is not a whole number"),
    (
        "model.initialisation.hidden.kind=random",
        f'model.initialisation.hidden.kind = "random"; {one_of(tags(config.Init))}',
    ),
    ("title=3", 'title = 3; write text in quotes ("...")'),
    ("model=3", "model = 3; write a table ({ key = value, ... })"),
    ("seed=-1", "seed = -1; write a whole number of 0 or more"),
    ("data.kind=speech", f'data.kind = "speech"; {one_of(tags(config.Data))}'),
    ("data=ptb", f'data = "ptb"; {table_of(config.Data)}'),
    ("data={max_vocabulary = 9}", f"the key data.kind is missing; {one_of(tags(config.Data))}"),
    (
        "data.evaluation.beam=2",
        f"unknown key data.evaluation.beam; {keys_of(config.TextEvaluation)}",
    ),
    ("data={kind = 'music'}", 'model.encoder.kind = "lookup" with data.kind = "music"; write "frames"'),
    ("data={kind = 'pairs'}", 'data.kind = "pairs" needs a model that reads a source; add the table model.source'),
    (
        "model.source={stack = {sizes = [4]}}",
        'model.source with data.kind = "text"; only "pairs" have sources',
    ),
    ("training.order=file", 'training.order = "file" with data.kind = "text"; it is for "pairs": remove it'),
    *(
        (
            f"training.forcing={{schedule = 'exponential', scale = {scale}}}",
            f'training.forcing: scale = {float(scale):g} with schedule = "exponential": epsilon is scale^i, which falls'
            " only where scale is below 1",
        )
        for scale in ("1", "1e200")
    ),
    (
        "training.optimiser={kind = 'sgd', lr = 1.0, nesterov = true}",
        "training.optimiser: nesterov = true has no effect without momentum; set momentum, or leave nesterov out",
    ),
    (
        'model.output.choice={kind = "adaptive", cutoffs = [5, 0]}',
        "model.output.choice.cutoffs[1] = 0; write a whole number of 1 or more",
    ),
    ('training.clip="a\\nb"', 'training.clip = "a\\nb"; write a number above 0'),
    ("data={kind = 'pairs', valid = 0}", "data.valid = 0; write a whole number of 1 or more"),
    ("data={kind = 'pairs', test = 0}", "data.test = 0; write a whole number of 1 or more"),
    ("data.max_vocabulary=2", "data.max_vocabulary = 2; write a whole number of 3 or more"),
    (
        "data.test_fraction=0.99",
        "data: valid_fraction 0.05 and test_fraction 0.99 make more than the whole text; their sum may be 1 at most",
    ),
]


@pytest.mark.parametrize(("setting", "message"), SETTINGS)
def test_a_wrong_setting_is_named_with_what_is_allowed(path, setting, message):
    assert complaint(path, setting) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        ('title = "small"\n', 'the key title is missing; write text in quotes ("...")'),
        ("epochs = 2\n", "the key training.epochs is missing; write a whole number of 1 or more"),
        (
            'encoder = { kind = "lookup", size = 4 }\n',
            f"the key model.encoder is missing; {table_of(config.Encoder)}",
        ),
        (
            'core = { kind = "stack", sizes = [5, 4], cell = { kind = "lstm" } }\n',
            f"the key model.core is missing; {table_of(config.Core)}",
        ),
        (
            'kind = "adam", ',
            f"the key training.optimiser.kind is missing; {one_of(tags(OPTIMISERS))}",
        ),
    ],
)
def test_a_missing_key_is_named_with_what_is_allowed(path, removed, message):
    path.write_text(TOML.replace(removed, ""))
    assert complaint(path) == f"{path}: {message}"


def test_a_missing_recipe_is_named(tmp_path):
    path = tmp_path / "none.toml"
    assert complaint(path) == f"{path}: no such recipe; `elman recipes` lists those that come with elman"


def test_a_shipped_recipe_is_found_from_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.load_recipe("recipes/shakespeare/demo.toml", ["seed=7"]).seed == 7


def test_malformed_toml_names_the_line(path):
    path.write_text('title = "small"\nmodel\n')
    assert complaint(path) == (
        f"{path}: not a readable TOML recipe (Expected '=' after a key in a key/value pair (at line 2, column 6))"
    )


def test_a_mark_of_an_editor_at_the_beginning_is_passed_over(path):
    path.write_bytes("\ufeff".encode() + path.read_bytes())
    assert config.load_recipe(path).title == "small"


def test_a_recipe_that_is_not_utf8_is_refused(path):
    path.write_bytes(b"title = '\xff'")
    assert complaint(path).startswith(f"{path}: not a readable TOML recipe ('utf-8' codec can't decode byte 0xff")


def test_folder_in_place_of_a_recipe(tmp_path):
    assert complaint(tmp_path).startswith(f"{tmp_path}: not a readable TOML recipe (")


@pytest.mark.parametrize("setting", ["training.epochs", "=3", ".epochs=3", "training..epochs=3", ""])
def test_setting_without_key_or_value(path, setting):
    assert complaint(path, setting) == (
        f"--set {setting}: write key.path=value, such as --set training.optimiser.lr=20"
    )


def test_setting_below_a_value(path):
    assert complaint(path, "training.epochs.x=1") == ("--set training.epochs.x=1: epochs is not a table of the recipe")


@pytest.mark.parametrize(
    ("setting", "read"),
    [
        ("training.epochs=7", lambda recipe: recipe.training.epochs == 7),
        ("training.optimiser.lr=20", lambda recipe: recipe.training.optimiser.lr == 20.0),
        ("training.optimiser.lr=3e-3", lambda recipe: recipe.training.optimiser.lr == 0.003),
        ("training.window.random=true", lambda recipe: recipe.training.window.random is True),
        ("model.core.sizes=[6, 4]", lambda recipe: recipe.model.core.sizes == (6, 4)),
        ("model.output.contexts.heads={2 = 3}", lambda recipe: recipe.model.output.contexts.heads == {2: 3}),
        (
            "model.output.contexts.heads.0=3",
            lambda recipe: recipe.model.output.contexts.heads == {0: 3, 1: 1, 2: 2},
        ),
        ("model.output.activation=relu", lambda recipe: recipe.model.output.activation == "relu"),
        ('model.output.activation="relu"', lambda recipe: recipe.model.output.activation == "relu"),
        ("title=two words", lambda recipe: recipe.title == "two words"),
        ('title="3"', lambda recipe: recipe.title == "3"),
        ("title=a=b", lambda recipe: recipe.title == "a=b"),
        ("training.fine_tune={lr = 1, epochs = 2}", lambda recipe: recipe.training.fine_tune.epochs == 2),
        ("training.penalties.ar=2", lambda recipe: recipe.training.penalties.ar == 2.0),
    ],
)
def test_setting_is_typed_as_in_the_file(path, setting, read):
    assert read(config.load_recipe(path, [setting]))


def test_later_settings_win(path):
    assert config.load_recipe(path, ["training.epochs=3", "training.epochs=4"]).training.epochs == 4


def test_dump_writes_every_default_and_reads_back(path, tmp_path):
    recipe = config.load_recipe(path, ["training.fine_tune={lr = 1, epochs = 2}", "notes=several\nlines"])
    written = tmp_path / "written.toml"
    written.write_text(config.dump_recipe(recipe))
    assert config.load_recipe(written) == recipe
    assert "checkpoint_minutes = 3.0" in written.read_text()


def test_changed_keys_by_path(path):
    old = config.load_recipe(path)
    new = config.load_recipe(
        path, ["model.core.sizes=[6, 4]", "training.clip=1", "model.output.contexts.heads.0=1", "seed=4"]
    )
    assert config.changed_keys(old, new) == [
        "model.core.sizes",
        "model.output.contexts.heads.0",
        "seed",
        "training.clip",
    ]
    assert config.changed_keys(old, old) == []


def test_changed_keys_of_another_kind(path):
    old = config.load_recipe(path)
    new = config.load_recipe(path, ["training.optimiser={kind = 'sgd', lr = 0.01}"])
    assert config.changed_keys(old, new) == [
        f"training.optimiser.{key}" for key in ("betas", "decoupled", "eps", "kind", "momentum", "nesterov")
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["model.output.contexts.size=5"],
            "model.output.choice.tied needs contexts as wide as the word vectors, but contexts have 5 and"
            " model.encoder.size is 4; make them equal or set tied = false",
        ),
        (
            ["model.output.contexts={kind = 'single'}", "model.core.sizes=[4, 6]"],
            "model.output.choice.tied needs contexts as wide as the word vectors, but contexts have 6 and"
            " model.encoder.size is 4; make them equal or set tied = false",
        ),
        (
            ["model.output.contexts.heads.3=2"],
            "model.output.contexts.heads names level 3, but the levels are 0 (the encoder) to 2 (the last layer)",
        ),
        (
            ["model.output.contexts.heads.-1=2"],
            "model.output.contexts.heads names level -1, but the levels are 0 (the encoder) to 2 (the last layer)",
        ),
        (
            ["model.output.contexts.heads={}"],
            "model.output.contexts.heads is empty; set a level, such as heads = { 3 = 15 }",
        ),
        (
            ["model.core.cell.forget_gate=false", "model.core.cell.peepholes=true"],
            "model.core.cell: peepholes need the forget gate; set forget_gate = true",
        ),
        (
            ["model.core.cell.forget_gate=false", "model.core.cell.input_gate=coupled"],
            'model.core.cell: input_gate = "coupled" needs a forget gate and no peepholes; set'
            ' input_gate = "free", or forget_gate = true and peepholes = false',
        ),
        (
            ["model.core.connections=melis"],
            'model.core.connections = "melis" adds the layers up, so model.core.sizes must be equal, but they are'
            " [5, 4]",
        ),
        (
            ["model.core.cell.kind=gru", "model.core.recurrent_dropout=0.1"],
            "model.core.recurrent_dropout masks the output in products with recurrent weights, and there the cell"
            " gru-after cannot mask it alone, since its step reads the output in other places too; use"
            " model.core.weight_drop, or the cell lstm or elman",
        ),
    ],
)
def test_parts_that_do_not_fit(path, settings, message):
    with pytest.raises(UserError) as caught:
        build_model(config.load_recipe(path, settings).model, 10)
    assert str(caught.value).removeprefix(f"{path}: ") == message


def every_type(kind):
    """The type and all types inside it."""
    yield kind
    inside = getattr(kind, "types", ()) or getattr(kind, "item_types", ())
    inside += tuple(field.type for field in getattr(kind, "fields", ()))
    inside += tuple(
        getattr(kind, name) for name in ("item_type", "key_type", "value_type") if name in kind.__struct_fields__
    )
    if isinstance(kind, msgspec.inspect.CustomType):
        inside += tuple(msgspec.inspect.type_info(one) for one in allowed(kind.cls) if isinstance(one, type))
    for one in inside:
        yield from every_type(one)


def test_there_are_words_for_every_type_of_a_recipe():
    types = [
        kind
        for kind in every_type(msgspec.inspect.type_info(config.Recipe))
        if not isinstance(kind, msgspec.inspect.NoneType)
    ]
    assert len(types) > 200
    assert all(_allowed(kind) for kind in types)


def test_toy_recipe_reads_back():
    assert config.changed_keys(text_runs.recipe(), text_runs.recipe()) == []


def test_what_is_read_is_not_changed_for_the_next_reader():
    """Texts that were read are kept, since experiments read the same recipes again and again."""
    text = "[data]\nlines = [1, 2]\n"
    parse_toml(text)["data"]["lines"].append(3)
    assert parse_toml(text) == {"data": {"lines": [1, 2]}}
