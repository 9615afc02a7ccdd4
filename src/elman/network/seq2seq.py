"""A model of targets given sources: a language model whose state is prepared by reading the source."""

from typing import final

from torch import Tensor, nn

from elman import config
from elman.data.batches import Source
from elman.errors import UserError
from elman.network.cells.cell import LayerState
from elman.network.cells.lstm import LSTM
from elman.network.cores.attentive import Attentive, AttentiveCore
from elman.network.cores.core import RecurrentCore
from elman.network.cores.layer import Padding
from elman.network.cores.source import Reader, Reading, SourceReader, require_plain
from elman.network.cores.stack import Stack, StackCore
from elman.network.encoders.encoder import TokenEncoder, build_encoder
from elman.network.encoders.lookup import LookupEncoder
from elman.network.initialisation import fill
from elman.network.model import LanguageModel
from elman.network.output.layer import OutputLayer
from elman.network.state import State, select


class Bridge(nn.Module):
    """Maps of the state s after the source, with which the layers of a decoder begin (Bahdanau et al. 2015, A.2.2).

        h_0 = tanh(W s_h + b), and for an LSTM c_0 = W' s_c + b'

    s is the state of the reader's last layer, both directions concatenated; in the paper it is the backward one alone.
    The layers have the widths `sizes` and `slots` tensors each in their state.
    """

    def __init__(self, source_size: int, sizes: tuple[int, ...], slots: int) -> None:
        super().__init__()
        self.slots = slots
        self.maps = nn.ModuleList(nn.Linear(source_size, size) for size in sizes for _ in range(slots))

    def forward(self, final: tuple[LayerState, ...]) -> tuple[LayerState, ...]:
        mapped = [one(final[-1][place % self.slots]) for place, one in enumerate(self.maps)]
        for place in range(0, len(mapped), self.slots):
            mapped[place] = mapped[place].tanh()
        return tuple(tuple(mapped[at : at + self.slots]) for at in range(0, len(mapped), self.slots))

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the matrices as inputs of a layer; the biases are zero."""
        for parameter in self.parameters():
            fill(parameter, rules.input if parameter.ndim > 1 else config.Zeros(), parameter.shape[-1])


@final
class SequenceToSequence(LanguageModel):
    """p(next symbol | symbols so far, source): a language model whose first state is made by `read`.

    Shapes: S steps of the source, T of the target, B pairs, V target symbols. The bridge makes the first state of the
    core's layers; without it they begin with the reader's final states, layer by layer (Sutskever et al. 2014, Luong et
    al. 2015), which have the same widths. A core that is a plain stack knows no more of the source than this state.
    """

    core: AttentiveCore | StackCore

    def __init__(
        self,
        encoder: TokenEncoder,
        core: AttentiveCore | StackCore,
        output: OutputLayer,
        reader: SourceReader,
        bridge: Bridge | None = None,
    ) -> None:
        super().__init__(encoder, core, output)
        self.reader, self.bridge = reader, bridge

    @property
    def attends(self) -> bool:
        return isinstance(self.core, AttentiveCore)

    def read(self, source: Source, padding: Padding | None = None) -> State:
        """The state of B targets that have not begun, given their sources [S, B]; `padding` as the reader has it."""
        reading: Reading = self.reader(source, padding)
        layers = reading.final if self.bridge is None else self.bridge(reading.final)
        if isinstance(self.core, AttentiveCore):
            return self.core.prepare(reading.memory, reading.mask, layers)
        return layers

    def reorder(self, state: State, rows: Tensor) -> State:
        """Exchange rows that have the same source."""
        return self.core.reorder(state, rows) if isinstance(self.core, AttentiveCore) else select(state, rows)

    def log_prob_given(self, source: Source, inputs: Tensor, targets: Tensor) -> Tensor:
        """Log-probability [T, B] (nats) of targets [T, B] given their sources and the inputs up to each position."""
        log_prob, _ = self.log_prob(inputs, targets, self.read(source))
        return log_prob

    def initialise(self, rules: config.Initialisation) -> None:
        super().initialise(rules)
        if self.reader.encoder is not self.encoder:
            self.reader.encoder.initialise(rules)
        self.reader.initialise(rules)
        if self.bridge is not None:
            self.bridge.initialise(rules)


def build_seq2seq(
    record: config.Model, encoder: TokenEncoder, core: RecurrentCore, output: OutputLayer, num_source: int
) -> SequenceToSequence:
    """The model of a recipe that has a source, from its decoder's parts.

    Raises UserError where the core cannot continue from a source, or parts do not fit together.
    """
    assert record.source is not None
    source: Reader = record.source
    decoder, locked = record.core, record.masks == "locked"
    layers = decoder.stack if isinstance(decoder, Attentive) else decoder
    if not isinstance(layers, Stack):
        raise UserError(
            'model.source needs a core that continues from it: set model.core.kind = "attentive", or "stack" for a'
            " decoder without attention, or remove model.source"
        )
    require_plain(source.stack, "model.source.stack")
    require_plain(layers, "model.core" if layers is decoder else "model.core.stack")
    assert isinstance(core, AttentiveCore | StackCore)
    source_encoder = encoder
    if source.encoder is not None:
        source_encoder = build_encoder(source.encoder, num_source, locked=locked)
    elif not isinstance(encoder, LookupEncoder) or len(encoder.weight) != num_source:
        raise UserError(
            "without model.source.encoder the source is read with the target's vectors, but the two have different"
            ' vocabularies; add one, such as encoder = { kind = "lookup", size = 200 }, or share the vocabulary'
        )
    reader = SourceReader(source, source_encoder, locked=locked)
    return SequenceToSequence(encoder, core, output, reader, _bridge(source, layers, reader))


def _bridge(source: Reader, layers: Stack, reader: SourceReader) -> Bridge | None:
    if type(source.stack.cell) is not type(layers.cell):
        raise UserError(
            "the cells of model.source and of model.core are of two kinds, but the state of one is the first state of"
            " the other; use one cell"
        )
    if source.start == "bridge":
        return Bridge(reader.sizes[-1], layers.sizes, 2 if isinstance(source.stack.cell, LSTM) else 1)
    if reader.sizes != layers.sizes:
        raise UserError(
            'model.source.start = "copy" begins each layer of the decoder with the state of one of the reader\'s, but'
            f" their widths are {list(layers.sizes)} and {list(reader.sizes)} (both directions together); make them"
            ' equal, or set start = "bridge"'
        )
    return None
