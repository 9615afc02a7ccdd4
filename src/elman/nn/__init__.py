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

from elman.network.cells.chaos_free import ChaosFree as ChaosFreeCell
from elman.network.cells.continuous import Continuous as ContinuousCell
from elman.network.cells.deltanet import DeltaNet as DeltaNetCell
from elman.network.cells.elman import Elman as ElmanCell
from elman.network.cells.gru import GRU as GRUCell
from elman.network.cells.highway import Highway as HighwayCell
from elman.network.cells.ladder import Ladder as LadderCell
from elman.network.cells.local_attention import LocalAttention as LocalAttentionCell
from elman.network.cells.lru import LRU as LRUCell
from elman.network.cells.lstm import LSTM as LSTMCell
from elman.network.cells.lstm_variant import LSTMVariant as LSTMVariantCell
from elman.network.cells.mamba2 import Mamba2 as Mamba2Cell
from elman.network.cells.min_gru import MinGRU as MinGRUCell
from elman.network.cells.min_lstm import MinLSTM as MinLSTMCell
from elman.network.cells.minimal_gated import MinimalGated as MinimalGatedCell
from elman.network.cells.mlstm import MLSTM as MLSTMCell
from elman.network.cells.mogrifier import Mogrifier as MogrifierCell
from elman.network.cells.mut import MUT as MUTCell
from elman.network.cells.qrnn import QRNN as QRNNCell
from elman.network.cells.rg_lru import RGLRU as RGLRUCell
from elman.network.cells.rwkv7 import RWKV7 as RWKV7Cell
from elman.network.cells.slstm import SLSTM as SLSTMCell
from elman.network.cells.sru import SRU as SRUCell
from elman.network.cells.unitary import Unitary as UnitaryCell
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


class ChaosFree(Recurrent, cell=ChaosFreeCell):
    """The chaos-free network (Laurent & von Brecht 2017)."""


class Continuous(Recurrent, cell=ContinuousCell):
    """Continuous-time units with time constants (Beer 1995)."""


class DeltaNet(Recurrent, cell=DeltaNetCell):
    """The gated delta rule (Yang, Kautz & Hatamizadeh 2024)."""


class Elman(Recurrent, cell=ElmanCell):
    """The simple recurrent network (Elman 1990); torch.nn.RNN with more nonlinearities."""


class GRU(Recurrent, cell=GRUCell):
    """The gated recurrent unit (Cho et al. 2014), by default with torch's equations and weights."""


class Highway(Recurrent, cell=HighwayCell):
    """The recurrent highway network (Zilly et al. 2017)."""


class Ladder(Recurrent, cell=LadderCell):
    """From Elman's network to the LSTM, one gate at a time."""


class LocalAttention(Recurrent, cell=LocalAttentionCell):
    """Self-attention over a window of past inputs, with rotary positions (Su et al. 2021)."""


class LRU(Recurrent, cell=LRUCell):
    """The linear recurrent unit (Orvieto et al. 2023)."""


class LSTM(Recurrent, cell=LSTMCell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997), by default with torch's equations and weights."""


class LSTMVariant(Recurrent, cell=LSTMVariantCell):
    """The LSTM with peepholes and one change (Greff et al. 2017)."""


class Mamba2(Recurrent, cell=Mamba2Cell):
    """The mixer of Mamba-2 (Dao & Gu 2024)."""


class MinGRU(Recurrent, cell=MinGRUCell):
    """minGRU (Feng et al. 2024)."""


class MinimalGated(Recurrent, cell=MinimalGatedCell):
    """The minimal gated unit (Zhou et al. 2016)."""


class MinLSTM(Recurrent, cell=MinLSTMCell):
    """minLSTM (Feng et al. 2024)."""


class MLSTM(Recurrent, cell=MLSTMCell):
    """mLSTM of the extended LSTM (Beck et al. 2024)."""


class Mogrifier(Recurrent, cell=MogrifierCell):
    """The Mogrifier LSTM (Melis, Kocisky & Blunsom 2020)."""


class MUT(Recurrent, cell=MUTCell):
    """MUT1, MUT2 and MUT3, found by a search (Jozefowicz et al. 2015)."""


class QRNN(Recurrent, cell=QRNNCell):
    """The quasi-recurrent network (Bradbury et al. 2017)."""


class RGLRU(Recurrent, cell=RGLRUCell):
    """The real-gated linear recurrent unit of Griffin (De et al. 2024)."""


class RWKV7(Recurrent, cell=RWKV7Cell):
    """The time mixing of RWKV-7 (Peng et al. 2025)."""


class SLSTM(Recurrent, cell=SLSTMCell):
    """sLSTM of the extended LSTM (Beck et al. 2024)."""


class SRU(Recurrent, cell=SRUCell):
    """The simple recurrent unit (Lei et al. 2018)."""


class Unitary(Recurrent, cell=UnitaryCell):
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
