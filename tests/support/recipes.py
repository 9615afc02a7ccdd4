"""The shipped recipes by name, their kinds, and the size of what they build."""

import functools

import torch

from elman import config
from elman.config.toml import shipped
from elman.network.build import build_model

RECIPES = {path.relative_to("recipes").with_suffix("").as_posix(): recipe for path, recipe in shipped()}
LAB = {
    name
    for name in RECIPES
    if name.split("/")[1].startswith(("small-", "minutes-"))
    or name.split("/")[0] in ("shakespeare", "japanese", "text")
}
MUSIC = {name for name, recipe in RECIPES.items() if recipe.kind == "music"}
SERIES = {name for name, recipe in RECIPES.items() if recipe.kind == "series"}
PAIRS = {name for name, recipe in RECIPES.items() if recipe.kind == "pairs"}
GRAMMAR = {name for name in RECIPES if name.startswith("grammar/")}
OWN = {"ptb/night"}  # of a published size, by settings of no paper
PAPER = sorted(RECIPES.keys() - LAB - MUSIC - SERIES - PAIRS - GRAMMAR - OWN)
WORDS = {
    "ptb": 10_000,
    "wikitext-2": 33_278,
    "shakespeare": 15_000,
    "one-billion-word": 793_471,
    "music": 93,
    "series": 1,
    "grammar": 24,
    "reproduce": 3_000,
    "ptb-characters": 50,
    "enwik8": 256,
    "text8": 27,
    "japanese": 6_000,
    "text": 15_000,
    "text/characters": 3_000,
    "shakespeare/characters": 65,
    "shakespeare/minutes-5-characters": 65,
    "shakespeare/minutes-20-characters": 65,
    "shakespeare/rtrl": 65,
    "headlines": 6_000,
    "translation": 8_000,
    "parsing": 100,
    "programs": 50,
    "phonemes": 80,
    "treebank": 5_000,
    "tagging": 6_000,
}
PTB_CHARACTERS = 46
"""Different characters in the words of the Penn Treebank."""

FUNCTIONS = ["softmax", "relu", "sigmoid", "softplus", "sigsoftmax"]
"""Output functions of the thesis."""


@functools.cache
def num_parameters(name):
    recipe, size = RECIPES[name].model, WORDS.get(name) or WORDS[name.split("/")[0]]
    words = [chr(ord("a") + index % PTB_CHARACTERS) for index in range(size)]
    with torch.device("meta"):
        model = build_model(recipe, size, words=words)
    parameters = list(model.parameters())
    assert all(parameter.is_meta for parameter in parameters)
    return sum(parameter.numel() for parameter in parameters)


def differences(one, other):
    """The key paths at which two recipes differ, apart from what is said about them."""
    said = ("title", "notes", "citation", "expected")
    return {key for key in config.changed_keys(RECIPES[one], RECIPES[other]) if not key.startswith(said)}
