"""The shipped recipes: each builds with the size it states, and differs from its siblings only as it says."""

import itertools
import tomllib
from pathlib import Path

import pytest

from elman import config
from elman.config.toml import find, resolve
from elman.data.catalog.known import info
from elman.objective.loss import build_objective
from support.recipes import FUNCTIONS, LAB, PAIRS, RECIPES, differences, num_parameters


@pytest.mark.slow
def test_builds_with_the_size_it_promises():
    for recipe in RECIPES.values():
        build_objective(recipe.training)
    assert not [name for name, recipe in RECIPES.items() if not recipe.title]
    sizes = {name: recipe.expected.parameters for name, recipe in RECIPES.items() if recipe.expected is not None}
    built = {name: num_parameters(name) for name in RECIPES}
    assert not [name for name, size in sizes.items() if size not in (None, built[name])]


def test_pairs_say_where_they_come_from():
    for name in sorted(PAIRS):
        recipe = RECIPES[name]
        assert recipe.citation, name
        assert recipe.notes, name
        assert recipe.data.corpus is None or info(recipe.data.corpus).kind == "pairs", name


@pytest.mark.parametrize("names", [("small-encdec", "small-mos", "small-doc"), ("encdec", "encdec-mos", "encdec-doc")])
def test_headlines_differ_in_their_contexts_alone(names):
    """Takase et al. 2018, Table 6: one component; two of the last level; two more of the level below."""
    plain, mos, doc = (f"headlines/{name}" for name in names)
    top = 3 if names[0] == "encdec" else 2
    assert RECIPES[mos].model.output.contexts.heads == {top: 2}
    assert RECIPES[doc].model.output.contexts.heads == {top: 2, top - 1: 2}
    for other in (mos, doc):
        assert all(key.startswith("model.output.contexts") for key in differences(plain, other))


def test_translations_differ_in_their_direction_alone():
    assert differences("translation/small-ja-en", "translation/small-en-ja") == {"data.languages"}


@pytest.mark.parametrize("cell", ["srn", "gru", "lstm"])
def test_starting_small_differs_in_its_stages_alone(cell):
    every = f"grammar/{cell}"
    text, memory = differences(f"{every}-by-complexity", every), differences(f"{every}-by-memory", every)
    assert text == {"data.grammar.complex", "data.grammar.stages"}
    assert memory == {"training.memory"}
    assert RECIPES[f"{every}-by-complexity"].data.grammar.stages[-1].complex == RECIPES[every].data.grammar.complex
    for name in (every, f"{every}-by-complexity", f"{every}-by-memory"):
        assert RECIPES[name].citation
        assert RECIPES[name].notes
    alike = differences(every, "grammar/lstm")
    assert alike <= {"model.core.cell.kind", "model.core.sizes"} | {key for key in alike if "model.core.cell." in key}


def bases(name):
    """The recipes that one is based on, the nearest first."""
    base = tomllib.loads(find(f"{name}.toml").read_text(encoding="utf-8")).get("base")
    return [] if base is None else [base.removesuffix(".toml"), *bases(base.removesuffix(".toml"))]


def test_bases_are_shipped_recipes_and_chains_are_short():
    found = {name: bases(name) for name in RECIPES}
    assert not [name for name, chain in found.items() if len(chain) > 2 or not RECIPES.keys() >= set(chain)]


@pytest.mark.slow
def test_recipes_that_are_nearly_the_same_have_a_common_base():
    """A file that differs from another in at most three keys should state those keys alone."""
    family = {name: {name, *bases(name)} for name in RECIPES}
    apart = [pair for pair in itertools.combinations(RECIPES, 2) if family[pair[0]].isdisjoint(family[pair[1]])]
    assert not [pair for pair in apart if len(differences(*pair)) <= 3]


def test_titles_are_all_different():
    titles = [recipe.title for recipe in RECIPES.values()]
    assert len(set(titles)) == len(titles)


def test_lab_scale_is_small():
    for name in sorted(LAB):
        assert num_parameters(name) < 8e6, name
        longer = {"music/minutes-5": 18}.get(name, 12)
        assert RECIPES[name].training.epochs <= (32 if name.startswith(("parsing/", "reproduce/")) else longer), name


def test_lab_twins_differ_in_their_output_layer_alone():
    for name in ("mos", "doc", "moss"):
        changed = differences(f"ptb/small-twin-{name}", "ptb/small-twin-awd-lstm")
        assert {key for key in changed if not key.startswith("model.output.")} <= {"training.penalties.balance"}


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name != "softmax"])
def test_lab_output_functions_are_the_twin_with_another_activation(function):
    """The biases of sigmoid begin at the frequencies of words, too: from 0 it learns late."""
    more = {"model.initialisation.output_bias"} if function == "sigmoid" else set()
    assert differences(f"ptb/small-{function}", "ptb/small-twin-awd-lstm") == {"model.output.activation"} | more


def test_lab_choices_differ_from_the_twin_in_the_choice_alone():
    for name in ("adaptive-softmax", "tree"):
        changed = differences(f"ptb/small-{name}", "ptb/small-twin-awd-lstm")
        assert all(key.startswith("model.output.choice.") for key in changed)


@pytest.mark.parametrize(("corpus", "prefix"), [("ptb", "small-"), ("one-billion-word", "")])
def test_adaptive_sigsoftmax_differs_from_adaptive_softmax_in_the_activation_alone(corpus, prefix):
    pair = [f"{corpus}/{prefix}adaptive-{name}" for name in ("softmax", "sigsoftmax")]
    assert differences(*pair) == {"model.output.activation"}


def test_lab_grus_differ_in_the_reset_gate_alone():
    assert differences("ptb/small-gru", "ptb/small-gru-reset-before") == {"model.core.cell.reset"}


@pytest.mark.parametrize("name", ["small-gru", "small-gru-reset-before", "small-elman"])
def test_lab_cells_have_as_many_parameters_as_the_twin(name):
    assert num_parameters(f"ptb/{name}") == pytest.approx(num_parameters("ptb/small-twin-awd-lstm"), rel=1e-3)


@pytest.mark.slow
def test_written_out_and_read_back(tmp_path):
    path = tmp_path / "recipe.toml"
    for name, recipe in RECIPES.items():
        path.write_text(config.dump_recipe(recipe))
        assert config.load_recipe(path) == recipe == config.load_recipe(find(f"{name}.toml")), name


def test_listed_paths_work_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve(Path("recipes/ptb/awd-lstm.toml")) == find("ptb/awd-lstm.toml")
    assert resolve(Path("mine.toml")) == Path("mine.toml")
    Path("recipes/ptb").mkdir(parents=True)
    Path("recipes/ptb/awd-lstm.toml").write_text("")
    assert resolve(Path("recipes/ptb/awd-lstm.toml")) == Path("recipes/ptb/awd-lstm.toml")


@pytest.mark.slow
def test_the_lab_character_model_has_sixty_per_cent_of_its_twin():
    """The share that the memo on Kim et al. 2016 states; they differ in what words are read by, and in nothing else."""
    share = num_parameters("ptb/small-char") / num_parameters("ptb/small-char-word-twin")
    assert share == pytest.approx(0.6, abs=0.01)
    changed = differences("ptb/small-char", "ptb/small-char-word-twin")
    assert all(key.startswith(("model.encoder", "model.initialisation.embedding")) for key in changed)
