"""What lies in a run folder: the recipe, where the data came from, the best model."""

import functools
import json
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import torch

from elman.config.recipe import Recipe
from elman.config.toml import load_recipe
from elman.data.grammar.sample import grammar_folder
from elman.data.music.pitches import Pitches
from elman.data.pairs.symbols import PairSymbols
from elman.data.text.vocabulary import Vocabulary
from elman.errors import UserError
from elman.learning import checkpoint
from elman.network.build import build_model
from elman.network.model import LanguageModel

Inputs: TypeAlias = Vocabulary | Pitches | PairSymbols
"""What a model reads, by what it is trained on."""

TEXT, MUSIC, PAIRS = "text", "music", "pairs of a source and a target"


class OpenedRun:
    """A run folder that is open: what runs on text, on music and on pairs have in common.

    Args:
        path: the run folder.
        device: where the model lives.

    Attributes:
        kind: what it is a run on: TEXT, MUSIC or PAIRS.
        refusal: said of a run on something else.
        recipe: it was trained by.
        inputs: what the model reads.

    Raises:
        UserError: the folder is not a run, or not one of this kind.

    """

    kind: ClassVar[str]
    refusal: ClassVar[str] = "{path} is a run on {found}; here a run on {kind} is needed"
    inputs: Inputs

    def __init__(self, path: Path | str, device: torch.device | str = "cpu") -> None:
        self.path, self.device = Path(path), torch.device(device)
        self.recipe = recipe_of(self.path)
        found = MUSIC if self.recipe.of_music else PAIRS if self.recipe.of_pairs else TEXT
        if found != self.kind:
            raise UserError(self.refusal.format(path=path, found=found, kind=self.kind))

    @functools.cached_property
    def model(self) -> LanguageModel:
        """The best model, in evaluation mode.

        Raises:
            UserError: there is none yet, it is damaged, or it belongs to other inputs.

        """
        with torch.inference_mode(False):  # parameters that count their changes, whoever asks first
            model, _ = load_model(self.path, self.recipe, self.inputs, self.device)
        return model

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """data.json: where the data came from, and its counts."""
        return data_facts(self.path)


def recipe_of(folder: Path) -> Recipe:
    """The recipe of a run folder.

    Raises:
        UserError: the folder is not a run.

    """
    if not (folder / "recipe.toml").is_file():
        raise UserError(
            f"{folder} is not a run folder: it has no recipe.toml; give the folder that `elman train --out` wrote"
        )
    return load_recipe(folder / "recipe.toml")


def data_facts(folder: Path) -> dict[str, Any]:
    """data.json of a run folder: where its text came from, its counts and digest.

    Raises:
        UserError: it is missing or damaged.

    """
    path = folder / "data.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        facts = None
    if not isinstance(facts, dict) or not {"source", "digest"} <= facts.keys():
        raise UserError(f"{path}: missing or damaged; restore the file of the run, or train again")
    return facts


def text_source(folder: Path, recipe: Recipe) -> str:
    """Where a run's data is; the text of a grammar that is no longer in the cache is made again.

    Raises:
        UserError: data.json is missing or damaged, or the grammar cannot be read.

    """
    source = str(data_facts(folder)["source"])
    if recipe.data.grammar is not None and not Path(source).exists():
        return str(grammar_folder(recipe.data.grammar))
    return source


def load_model(
    path: Path, recipe: Recipe, vocabulary: Inputs, device: torch.device
) -> tuple[LanguageModel, dict[str, Any]]:
    """The best model of a run folder in evaluation mode, and the facts saved with it; `vocabulary` is what it reads."""
    file = path / "model.safetensors"
    tensors, facts = checkpoint.load(file)
    if facts["vocabulary"] != vocabulary.digest:
        raise UserError(
            f"{file}: trained with another vocabulary than {path / 'vocabulary.tsv'} (its digest is"
            f" {facts['vocabulary'][:12]}, the file's {vocabulary.digest[:12]}); restore the vocabulary of the run"
        )
    with torch.random.fork_rng(devices=[]):
        model = build_model(recipe.model, len(vocabulary), *_of_words(vocabulary)).to(device)
    expected = {name: tuple(tensor.shape) for name, tensor in checkpoint.model_tensors(model).items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise UserError(
                f"{file}: does not fit {path / 'recipe.toml'}: {name} is {found.get(name, 'missing')}, the recipe needs"
                f" {expected.get(name, 'nothing of that name')}; restore the recipe of the run"
            )
    checkpoint.load_model(model, tensors)
    return model.eval(), facts


def _of_words(
    inputs: Inputs,
) -> tuple[tuple[int, ...] | None, tuple[str, ...] | None, int | None]:
    """The counts and the spelling of the words that are chosen from, and how many words sources have."""
    if isinstance(inputs, Pitches):
        return None, None, None
    if isinstance(inputs, PairSymbols):
        return inputs.target.counts, inputs.target.words, len(inputs.source)
    return inputs.counts, inputs.words, None
