"""A model of targets given sources: a language model whose state is prepared by reading the source."""

from typing import final

from torch import Tensor, nn

from elman.data.windows import Source
from elman.network.cells.cell import LayerState
from elman.network.cores.attentive import AttentiveCore
from elman.network.cores.source import Reading, SourceReader
from elman.network.encoders.encoder import TokenEncoder
from elman.network.model import LanguageModel
from elman.network.output.layer import OutputLayer
from elman.network.state import State


class Bridge(nn.Module):
    """The layers of a decoder begin with maps of the state s after the source (Bahdanau et al. 2015, A.2.2).

        h_0 = tanh(W s_h + b), and for an LSTM c_0 = W' s_c + b'

    s is that of the reader's last layer, both directions side by side; in the paper the backward one alone.

    Args:
        source_size: width of s.
        sizes: H of every layer.
        slots: tensors in the state of a layer.

    """

    def __init__(self, source_size: int, sizes: tuple[int, ...], slots: int) -> None:
        super().__init__()
        self.slots = slots
        self.maps = nn.ModuleList(nn.Linear(source_size, size) for size in sizes for _ in range(slots))

    def forward(self, final: tuple[LayerState, ...]) -> tuple[LayerState, ...]:
        """The state of every layer."""
        mapped = [one(final[-1][place % self.slots]) for place, one in enumerate(self.maps)]
        for place in range(0, len(mapped), self.slots):
            mapped[place] = mapped[place].tanh()
        return tuple(tuple(mapped[at : at + self.slots]) for at in range(0, len(mapped), self.slots))


@final
class SequenceToSequence(LanguageModel):
    """p(next symbol | symbols so far, source): everything of a language model, and `read`.

    Shapes: S steps of the source, T of the target, B pairs, V target symbols.

    Args:
        encoder: of the target's symbols.
        core: looks at the source.
        output: any distribution over V.
        reader: of sources.
        bridge: how the core's layers begin; None: with the reader's final states, layer by layer (Sutskever et al.
            2014, Luong et al. 2015), whose widths agree.

    """

    core: AttentiveCore

    def __init__(
        self,
        encoder: TokenEncoder,
        core: AttentiveCore,
        output: OutputLayer,
        reader: SourceReader,
        bridge: Bridge | None = None,
    ) -> None:
        super().__init__(encoder, core, output)
        self.reader, self.bridge = reader, bridge

    def read(self, source: Source) -> State:
        """The state of B targets that have not begun, given their sources [S, B]."""
        reading: Reading = self.reader(source)
        layers = reading.final if self.bridge is None else self.bridge(reading.final)
        return self.core.prepare(reading.memory, reading.mask, layers)

    def log_prob_given(self, source: Source, inputs: Tensor, targets: Tensor) -> Tensor:
        """Log-probability [T, B] (nats) of targets [T, B] given their sources and the inputs up to each position."""
        log_prob, _ = self.log_prob(inputs, targets, self.read(source))
        return log_prob
