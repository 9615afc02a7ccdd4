"""What a recipe may say: frozen, keyword-only records; a union of record types is the registry.

A recipe is a TOML file read into `Recipe`. An unknown key, a wrong type or a number outside its range is an error that
names the key by its path.
"""

from elman.config.initialisation import Glorot, He, Identity, Init, Initialisation, Normal, Orthogonal, Uniform, Zeros
from elman.config.model import Model
from elman.config.network import GRU, LSTM, Attentive, Elman, FeedForward, Frames, Lookup, Reader, Stack
from elman.config.optimisation import SGD, Adam, Constant, Cosine, Decay, Plateau, RMSprop, Steps, Window
from elman.config.output import (
    NADE,
    Adaptive,
    Bernoulli,
    Flat,
    Mixtape,
    Mixture,
    Monotone,
    Output,
    RareClass,
    Single,
    Tree,
)
from elman.config.recipe import Data, Evaluation, Expected, Recipe
from elman.config.record import Activation
from elman.config.toml import changed_keys, dump_recipe, load_recipe, parse_recipe
from elman.config.training import (
    Exponential,
    FineTune,
    Immediate,
    NonMonotone,
    OrthogonalWeights,
    Penalties,
    Spectral,
    SpectralNorm,
    Training,
)

__all__ = [
    "GRU",
    "LSTM",
    "NADE",
    "SGD",
    "Activation",
    "Adam",
    "Adaptive",
    "Attentive",
    "Bernoulli",
    "Constant",
    "Cosine",
    "Data",
    "Decay",
    "Elman",
    "Evaluation",
    "Expected",
    "Exponential",
    "FeedForward",
    "FineTune",
    "Flat",
    "Frames",
    "Glorot",
    "He",
    "Identity",
    "Immediate",
    "Init",
    "Initialisation",
    "Lookup",
    "Mixtape",
    "Mixture",
    "Model",
    "Monotone",
    "NonMonotone",
    "Normal",
    "Orthogonal",
    "OrthogonalWeights",
    "Output",
    "Penalties",
    "Plateau",
    "RMSprop",
    "RareClass",
    "Reader",
    "Recipe",
    "Single",
    "Spectral",
    "SpectralNorm",
    "Stack",
    "Steps",
    "Training",
    "Tree",
    "Uniform",
    "Window",
    "Zeros",
    "changed_keys",
    "dump_recipe",
    "load_recipe",
    "parse_recipe",
]
