"""The contents of recipes: frozen, keyword-only records; a family of parts is open (`elman.config.parts`).

A recipe is a TOML file read into `Recipe`. An unknown key, a wrong type or a number outside its range is an error that
names the key by its path.
"""

from elman.config import plugins
from elman.config.cells import (
    GRU,
    LRU,
    LSTM,
    MLSTM,
    QRNN,
    RGLRU,
    RWKV7,
    SLSTM,
    SRU,
    Cell,
    Continuous,
    DeltaNet,
    Elman,
    Highway,
    Ladder,
    LocalAttention,
    Mamba2,
    MinGRU,
    MinLSTM,
    Mogrifier,
    Perceptron,
    Unitary,
)
from elman.config.composition import Affine, BinaryTreeLSTM, ChildSumTreeLSTM, Composition, MatrixVector
from elman.config.data import Data
from elman.config.initialisation import (
    Glorot,
    He,
    Identity,
    Init,
    Initialisation,
    Normal,
    Orthogonal,
    Uniform,
    Zeros,
)
from elman.config.network import (
    Attentive,
    Characters,
    Cooccurrence,
    Core,
    Encoder,
    FeedForward,
    Frames,
    Jordan,
    Lookup,
    MemoryLayer,
    Model,
    Reader,
    Recursive,
    Reservoir,
    Residual,
    Sentence,
    Stack,
    TuringMachine,
    Values,
)
from elman.config.output import (
    NADE,
    Adaptive,
    Bernoulli,
    Choice,
    Contexts,
    Flat,
    Gaussian,
    GaussianMixture,
    InputGate,
    Mixtape,
    Mixture,
    Monotone,
    Output,
    RareClass,
    Single,
    Tree,
)
from elman.config.parts import Activation, OneOf, Part
from elman.config.recipe import Expected, Recipe
from elman.config.record import Nonlinearity
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
    BPTT,
    RTRL,
    SGD,
    Adam,
    Constant,
    Cosine,
    Decay,
    Exponential,
    FineTune,
    Forcing,
    Immediate,
    Margin,
    Memory,
    Muon,
    NonMonotone,
    OrthogonalWeights,
    Penalties,
    Plateau,
    Polynomial,
    RMSprop,
    Spectral,
    SpectralNorm,
    Steps,
    Training,
    Window,
)

plugins.load()
