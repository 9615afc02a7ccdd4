"""The contents of recipes: frozen, keyword-only records; a family of parts is open (`elman.config.parts`).

A recipe is a TOML file read into `Recipe`. An unknown key, a wrong type or a number outside its range is an error that
names the key by its path.
"""

from pkgutil import resolve_name
from typing import Any

from elman.config import parts, plugins
from elman.config.data import Data
from elman.config.initialisation import Glorot, He, Identity, Init, Initialisation, Normal, Orthogonal, Uniform, Zeros
from elman.config.network import Choice, Composition, Contexts, Core, Encoder, InputGate, Model, Output
from elman.config.parts import Activation, OneOf, Part
from elman.config.recipe import Expected, Recipe
from elman.config.record import Nonlinearity, Record
from elman.config.text import GrammarOptions, TextData, TextEvaluation, TextOptions
from elman.config.toml import (
    DESCRIPTIVE,
    changed_keys,
    decisive,
    dump_recipe,
    flatten,
    load_recipe,
    parse_recipe,
    set_keys,
)
from elman.config.training import (
    Constant,
    Constraint,
    Cosine,
    Criterion,
    Decay,
    Exponential,
    FineTune,
    Forcing,
    Immediate,
    Margin,
    Memory,
    NonMonotone,
    Optimiser,
    Penalties,
    Penalty,
    Plateau,
    Polynomial,
    Rule,
    Steps,
    Training,
    Window,
)


def __getattr__(name: str) -> Any:
    """A record that stands in the file of its torch module, such as `Stack` of `elman.network.cores.stack`."""
    if name[:1].isupper():
        cells = resolve_name("elman.network.cells.cell:Controller")
        parts_of_training = (Optimiser, Rule, Criterion, Penalty, Constraint)
        for family in (*parts_of_training, Encoder, Core, Contexts, Choice, Composition, cells):
            for module in parts.modules_of(family):
                found = vars(module).get(name)
                if isinstance(found, type) and issubclass(found, Record):
                    return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


plugins.load()
