"""How settings, lists of values, ranges and seeds are read."""

import json
import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.study.sweep.question import parse_seeds
from elman.study.sweep.space import Range, Setting, Space, Values, parse_settings, short_names, split_values

TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8)


def table(parts):
    """Values as an inline table."""
    return "{" + ", ".join(f"k{number} = {part}" for number, part in enumerate(parts)) + "}"


PLAIN = (st.integers(-9, 99) | st.sampled_from([0.5, 1e-3, True, False])).map(json.dumps) | TEXTS.map(json.dumps)
LITERAL = TEXTS.filter(lambda text: "'" not in text).map(lambda text: f"'{text}'")
VALUES = st.recursive(
    PLAIN | LITERAL,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]") | st.lists(inner, max_size=2).map(table)
    ),
    max_leaves=5,
)
BARE = st.from_regex(r"[A-Za-z][A-Za-z0-9_.' +-]{0,8}[A-Za-z0-9]", fullmatch=True)


@given(st.lists(VALUES | BARE, min_size=1, max_size=5))
def test_values_between_commas_are_those_that_were_joined(values):
    for separator in (",", " , "):
        assert split_values(separator.join(values)) == values


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_each_value_is_toml(values):
    for value, text in zip(values, split_values(",".join(values)), strict=True):
        assert tomllib.loads(f"x = {text}") == tomllib.loads(f"x = {value}")


@given(st.lists(st.lists(st.integers(0, 99).map(str), min_size=2, max_size=4, unique=True), max_size=3))
def test_a_grid_has_every_combination_once(axes):
    space = parse_settings([f"key{number}={','.join(values)}" for number, values in enumerate(axes)])
    grid = space.grid()
    assert len(grid) == len(set(grid)) == math.prod(map(len, axes))
    for number, values in enumerate(axes):
        assert {dict(setting.values)[f"key{number}"] for setting in grid} == set(values)
    assert len({space.label(setting) for setting in grid}) == len(grid)


RANGES = st.one_of(
    st.tuples(st.just("log"), st.floats(1e-6, 1.0), st.floats(1.5, 1e3), st.just(1)),
    st.tuples(st.just("float"), st.floats(-5, 0.5), st.floats(1.0, 9.0), st.just(1)),
    st.tuples(st.just("int"), st.integers(-5, 20), st.integers(21, 900), st.integers(1, 60)),
)


@given(RANGES, st.floats(0, 1))
def test_numbers_of_a_range_lie_in_it_and_are_toml(bounds, share):
    scale, low, high, step = bounds
    axis = Range(scale, low, high, step)
    value = tomllib.loads(f"x = {axis.at(share)}")["x"]
    assert low <= value <= high
    if scale == "int":
        assert isinstance(value, int)
        assert (value - low) % step == 0
    assert float(axis.at(0.0)) == pytest.approx(low, rel=1e-3, abs=1e-3)


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 8))
def test_random_settings_are_the_same_for_a_seed_and_more_extend_them(seed, few, more):
    space = parse_settings(["a.lr=log:1e-4..1", "b.size=int:10..90", "c=x,y"])
    assert space.drawn(seed, few + more)[:few] == space.drawn(seed, few)


def test_a_small_space_is_drawn_out():
    space = parse_settings(["a=1,2"])
    assert {setting.values for setting in space.drawn(0, 10)} == {(("a", "1"),), (("a", "2"),)}


@given(st.lists(st.sampled_from(["log:1e-4..1e-1", "int:1..9", "p,q,r", "u,v"]), min_size=1, max_size=4))
def test_the_extremes_hold_every_value_and_end(texts):
    space = parse_settings([f"key{number}={text}" for number, text in enumerate(texts)])
    found = space.extremes()
    for key, axis in space.axes.items():
        ends = {*axis.texts} if isinstance(axis, Values) else {axis.at(0.0), axis.at(1.0)}
        assert {dict(setting.values)[key] for setting in found} == ends


def test_one_value_is_set_for_all_and_commas_in_brackets_are_kept():
    space = parse_settings(["model.core.sizes=[8, 8]", 'title="a, b"', "x=[1,2],[3]", 'y={kind = "sgd", lr = 1}, z'])
    assert space.fixed == ("model.core.sizes=[8, 8]", 'title="a, b"')
    assert space.axes == {"x": Values(("[1,2]", "[3]")), "y": Values(('{kind = "sgd", lr = 1}', "z"))}


def test_names_are_as_short_as_they_differ():
    assert short_names(["model.a.lr", "training.lr", "x.y"]) == {
        "model.a.lr": "a.lr", "training.lr": "training.lr", "x.y": "y",
    }  # fmt: skip
    assert Space((), {}).label(Setting(())) == "the recipe"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("x", "write key.path=value"),
        ("x=", "write key.path=value"),
        ("x=1,,2", "a value between commas is empty"),
        ("x=1,2,1", "1 is there twice"),
        ("x=[1,2", "] is missing"),
        ('x="a,b', '" is missing'),
        ("seed=1,2", "--seeds"),
        ("x=log:0..1", "both above 0"),
        ("x=float:2..1", "from the lower to the higher"),
        ("x=int:1.5..3", "both whole numbers"),
        ("x=float:0..1/2", "steps are for int"),
        ("x=log:1e-4", "write a range as"),
        ("x=log:1..2,3", "write a range as"),
    ],
)
def test_what_cannot_be_read_is_one_line(setting, message):
    with pytest.raises(UserError) as error:
        parse_settings([setting])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_key_twice_and_a_range_in_a_grid_are_refused():
    with pytest.raises(UserError, match="x is set twice"):
        parse_settings(["x=1", "x=2"])
    with pytest.raises(UserError, match="a range is for --search random or optuna"):
        parse_settings(["x=int:1..5"]).grid()


@given(st.lists(st.integers(0, 999), min_size=1, max_size=6, unique=True))
def test_seeds_are_listed(seeds):
    assert parse_seeds(",".join(map(str, seeds))) == tuple(seeds)


@given(st.integers(0, 50), st.integers(0, 50))
def test_seeds_are_counted(first, more):
    assert parse_seeds(f"{first}-{first + more}") == tuple(range(first, first + more + 1))


@pytest.mark.parametrize("text", ["", "a", "3-1", "1,1", "1-3,2", "1-", "-1", "0-999999", "1-999999999"])
def test_wrong_seeds_are_refused(text):
    with pytest.raises(UserError, match="--seeds"):
        parse_seeds(text)
