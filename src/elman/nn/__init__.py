"""The parts of elman as torch modules by keyword: recurrent layers, embeddings, output layers, functions.

    from elman import nn as enn

    encoder = enn.Embedding(vocabulary, 400, word_dropout=0.1)
    core = enn.LSTM(400, [1150, 1150, 400], weight_drop=0.5, between_dropout=0.25, output_dropout=0.4)
    output = enn.MixtureOfSoftmaxes(400, vocabulary, components=15, width=400, weight=encoder.weight)
    h, state = core(encoder(inputs))             # [T, B, 400], and a state to continue with
    loss = output.nll(h, targets)
    state = enn.detach(state)

Recurrent layers have the arguments, results and weights of torch's own: changing `torch.nn.LSTM` or `torch.nn.GRU` into
the class of this name is enough for a program that uses them. Output layers have one protocol (`elman.nn.output`).
"""

from elman import config
from elman.network.cores.core import Trace
from elman.network.fast.precision import products_in
from elman.nn import functional, penalties
from elman.nn.adaptation import DynamicEvaluation, NeuralCache, gradient_statistics
from elman.nn.attention import AdditiveAttention, SoftWindow
from elman.nn.averaging import TriggeredAverage, WeightAverage
from elman.nn.chain import LinearChain
from elman.nn.embedding import Characters, Embedding, Encoder, ScalarMix
from elman.nn.evaluation import Reader, perplexity, token_log_probs
from elman.nn.fitting import Epoch, History, fit
from elman.nn.labelling import Hypothesis, Transducer, ctc_beam, transducer_beam
from elman.nn.output import Output
from elman.nn.output_mixtures import DirectOutputConnection, Mixture, MixtureOfSoftmaxes
from elman.nn.outputs import (
    NADE,
    AdaptiveSoftmax,
    Bernoulli,
    Gaussian,
    GaussianMixture,
    HierarchicalSoftmax,
    Mixtape,
    MonotoneSoftmax,
    PenMixture,
    RareClassSoftmax,
    Sigsoftmax,
    Softmax,
)
from elman.nn.recurrent import Recurrent, State, detach
from elman.nn.spectral import ConvolutionBound, SpectralBound, svd_weight


class ChaosFree(Recurrent, cell=config.ChaosFree):
    """The chaos-free network (Laurent & von Brecht 2017)."""


class Continuous(Recurrent, cell=config.Continuous):
    """Continuous-time units with time constants (Beer 1995)."""


class DeltaNet(Recurrent, cell=config.DeltaNet):
    """The gated delta rule (Yang, Kautz & Hatamizadeh 2024)."""


class Elman(Recurrent, cell=config.Elman):
    """The simple recurrent network (Elman 1990); torch.nn.RNN with more nonlinearities."""


class GRU(Recurrent, cell=config.GRU):
    """The gated recurrent unit (Cho et al. 2014), by default with torch's equations and weights."""


class Highway(Recurrent, cell=config.Highway):
    """The recurrent highway network (Zilly et al. 2017)."""


class Ladder(Recurrent, cell=config.Ladder):
    """From Elman's network to the LSTM, one gate at a time."""


class LocalAttention(Recurrent, cell=config.LocalAttention):
    """Self-attention over a window of past inputs, with rotary positions (Su et al. 2021)."""


class LRU(Recurrent, cell=config.LRU):
    """The linear recurrent unit (Orvieto et al. 2023)."""


class LSTM(Recurrent, cell=config.LSTM):
    """Long short-term memory (Hochreiter & Schmidhuber 1997), by default with torch's equations and weights."""


class LSTMVariant(Recurrent, cell=config.LSTMVariant):
    """The LSTM with peepholes and one change (Greff et al. 2017)."""


class Mamba2(Recurrent, cell=config.Mamba2):
    """The mixer of Mamba-2 (Dao & Gu 2024)."""


class MinGRU(Recurrent, cell=config.MinGRU):
    """minGRU (Feng et al. 2024)."""


class MinimalGated(Recurrent, cell=config.MinimalGated):
    """The minimal gated unit (Zhou et al. 2016)."""


class MinLSTM(Recurrent, cell=config.MinLSTM):
    """minLSTM (Feng et al. 2024)."""


class MLSTM(Recurrent, cell=config.MLSTM):
    """mLSTM of the extended LSTM (Beck et al. 2024)."""


class Mogrifier(Recurrent, cell=config.Mogrifier):
    """The Mogrifier LSTM (Melis, Kocisky & Blunsom 2020)."""


class MUT(Recurrent, cell=config.MUT):
    """MUT1, MUT2 and MUT3, found by a search (Jozefowicz et al. 2015)."""


class QRNN(Recurrent, cell=config.QRNN):
    """The quasi-recurrent network (Bradbury et al. 2017)."""


class RGLRU(Recurrent, cell=config.RGLRU):
    """The real-gated linear recurrent unit of Griffin (De et al. 2024)."""


class RWKV7(Recurrent, cell=config.RWKV7):
    """The time mixing of RWKV-7 (Peng et al. 2025)."""


class SLSTM(Recurrent, cell=config.SLSTM):
    """sLSTM of the extended LSTM (Beck et al. 2024)."""


class SRU(Recurrent, cell=config.SRU):
    """The simple recurrent unit (Lei et al. 2018)."""


class Unitary(Recurrent, cell=config.Unitary):
    """Unitary evolution (Arjovsky, Shah & Bengio 2016)."""


__all__ = [
    "GRU",
    "LRU",
    "LSTM",
    "MLSTM",
    "MUT",
    "NADE",
    "QRNN",
    "RGLRU",
    "RWKV7",
    "SLSTM",
    "SRU",
    "AdaptiveSoftmax",
    "AdditiveAttention",
    "Bernoulli",
    "ChaosFree",
    "Characters",
    "Continuous",
    "ConvolutionBound",
    "DeltaNet",
    "DirectOutputConnection",
    "DynamicEvaluation",
    "Elman",
    "Embedding",
    "Encoder",
    "Epoch",
    "Gaussian",
    "GaussianMixture",
    "HierarchicalSoftmax",
    "Highway",
    "History",
    "Hypothesis",
    "LSTMVariant",
    "Ladder",
    "LinearChain",
    "LocalAttention",
    "Mamba2",
    "MinGRU",
    "MinLSTM",
    "MinimalGated",
    "Mixtape",
    "Mixture",
    "MixtureOfSoftmaxes",
    "Mogrifier",
    "MonotoneSoftmax",
    "NeuralCache",
    "Output",
    "PenMixture",
    "RareClassSoftmax",
    "Reader",
    "Recurrent",
    "ScalarMix",
    "Sigsoftmax",
    "SoftWindow",
    "Softmax",
    "SpectralBound",
    "State",
    "Trace",
    "Transducer",
    "TriggeredAverage",
    "Unitary",
    "WeightAverage",
    "ctc_beam",
    "detach",
    "fit",
    "functional",
    "gradient_statistics",
    "penalties",
    "perplexity",
    "products_in",
    "svd_weight",
    "token_log_probs",
    "transducer_beam",
]
