"""A recipe may name a base."""

import pytest

from elman import config
from elman.config.toml import find
from elman.errors import UserError

BASE = """\
title = "base"
citation = "a paper"
notes = "of the base"
[data]
kind = "text"
corpus = "ptb"
eos = "none"
[model]
encoder = { kind = "lookup", size = 4 }
core = { kind = "stack", sizes = [5, 4], weight_drop = 0.5 }
[training]
epochs = 2
optimiser = { kind = "sgd", lr = 20.0, momentum = 0.5 }
[expected]
source = "its table"
"""


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refusal(path, *settings):
    with pytest.raises(UserError) as caught:
        config.load_recipe(path, list(settings))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_recipe_changes_its_base(tmp_path):
    write(tmp_path, "base.toml", BASE)
    path = write(tmp_path, "more/next.toml", 'base = "../base.toml"\ntitle = "next"\nmodel.core.weight_drop = 0.25\n')
    recipe = config.load_recipe(path, ["training.epochs=3"])
    assert (recipe.title, recipe.citation, recipe.training.epochs) == ("next", "a paper", 3)
    assert (recipe.model.core.sizes, recipe.model.core.weight_drop) == ((5, 4), 0.25)
    assert (recipe.notes, recipe.expected) == (None, None)
    assert (recipe.data.corpus, recipe.data.eos) == ("ptb", "none")
    again = write(tmp_path, "run/recipe.toml", config.dump_recipe(recipe))
    assert config.load_recipe(again) == recipe
    assert "base =" not in again.read_text()


def test_a_table_of_another_kind_replaces_that_of_the_base(tmp_path):
    write(tmp_path, "base.toml", BASE)
    path = write(
        tmp_path, "next.toml", 'base = "base.toml"\ntitle = "next"\ntraining.optimiser = { kind = "adam", lr = 0.1 }\n'
    )
    assert config.load_recipe(path).training.optimiser == config.Adam(lr=0.1)


def test_heads_replace_those_of_the_base(tmp_path):
    text = 'base = "ptb/awd-lstm-mos.toml"\ntitle = "next"\nmodel.output.contexts.heads = { 0 = 5, 2 = 10 }\n'
    recipe = config.load_recipe(write(tmp_path, "next.toml", text))
    assert recipe.model.output.contexts.heads == {0: 5, 2: 10}
    assert recipe.model.output.contexts.size == 280


def test_keys_of_the_base_can_be_left_out(tmp_path):
    write(tmp_path, "base.toml", BASE)
    path = write(tmp_path, "next.toml", 'base = "base.toml"\nwithout = ["data.corpus", "citation"]\ntitle = "next"\n')
    recipe = config.load_recipe(path)
    assert (recipe.data.corpus, recipe.citation, recipe.data.eos) == (None, None, "none")
    path = write(tmp_path, "next.toml", 'base = "base.toml"\nwithout = ["training.none.such"]\ntitle = "next"\n')
    assert "no key 'training.none.such'" in refusal(path)
    for wrong in ('"citation"', "3", "[3]"):
        path = write(tmp_path, "next.toml", f'base = "base.toml"\nwithout = {wrong}\ntitle = "next"\n')
        assert "write a list of key paths" in refusal(path)


def test_bases_have_bases_and_may_be_shipped(tmp_path):
    write(tmp_path, "one.toml", 'base = "ptb/awd-lstm-mos.toml"\ntitle = "one"\nseed = 7\n')
    path = write(tmp_path, "two.toml", 'base = "one.toml"\ntitle = "two"\nmodel.output.contexts.dropout = 0.5\n')
    shipped = config.load_recipe(find("ptb/awd-lstm-mos.toml"))
    changed = {"title", "notes", "seed", "model.output.contexts.dropout"}
    found = config.changed_keys(shipped, config.load_recipe(path))
    assert {key for key in found if not key.startswith("expected")} == changed


@pytest.mark.parametrize("base", ['"none.toml"', "3"])
def test_a_base_that_is_missing(tmp_path, base):
    path = write(tmp_path, "next.toml", f"base = {base}\n")
    assert refusal(path).startswith(f"{path}: base = ")


def test_bases_in_a_circle(tmp_path):
    write(tmp_path, "one.toml", 'base = "two.toml"\n')
    path = write(tmp_path, "two.toml", 'base = "one.toml"\n')
    assert "cannot be its own base" in refusal(path)
