"""The networks that claims on recurrences compare: from Elman's to those of today, in widths of as many weights."""

from collections.abc import Sequence
from typing import NamedTuple


def layers(cell: str, sizes: Sequence[int], dropout: float) -> str:
    """The setting `model.core` of plain layers of a cell (TOML), with dropout between them and before the output."""
    masks = f"between_dropout={dropout}, output_dropout={dropout}"
    return f'model.core={{kind="stack", cell={{kind={cell}}}, sizes={list(sizes)}, biases=1, {masks}}}'


def blocks(cell: str, size: int, dropout: float, more: str) -> str:
    """That of two residual blocks, each a norm and the cell, then a norm and a gated feed-forward half."""
    masks = f"dropout={dropout}, output_dropout={dropout}"
    return f'model.core={{kind="residual", size={size}, cell={{kind={cell}}}, {masks}{more}}}'


class Recurrence(NamedTuple):
    """A cell as TOML, in plain layers, two unless `layers` says otherwise, or in two residual blocks.

    `convolved`: the cell of a block reads a convolution over four inputs.
    """

    cell: str
    blocks: bool = False
    layers: int = 2
    convolved: bool = False

    def core(self, size: int, dropout: float) -> str:
        """The setting `model.core` of a width."""
        if self.blocks:
            return blocks(self.cell, size, dropout, ", convolution=4" if self.convolved else "")
        return layers(self.cell, [size] * self.layers, dropout)


LSTM = "LSTM"

RECURRENCES = {
    "Elman": Recurrence('"elman"'),
    LSTM: Recurrence('"lstm"'),
    "GRU": Recurrence('"gru"'),
    "QRNN": Recurrence('"qrnn"'),
    "SRU": Recurrence('"sru"'),
    "recurrent highway": Recurrence('"highway", depth=4', layers=1),
    "Mogrifier": Recurrence('"mogrifier"'),
    "sLSTM": Recurrence('"slstm"'),
    "minGRU": Recurrence('"min-gru"'),
    "minLSTM": Recurrence('"min-lstm"'),
    "LSTM, blocks": Recurrence('"lstm"', blocks=True),
    "minGRU, blocks": Recurrence('"min-gru"', blocks=True, convolved=True),
    "LRU, blocks": Recurrence('"lru"', blocks=True),
    "RG-LRU, blocks": Recurrence('"rg-lru"', blocks=True),
    "mLSTM, blocks": Recurrence('"mlstm", convolution=4', blocks=True),
    "Mamba-2, blocks": Recurrence('"mamba2"', blocks=True),
    "gated DeltaNet, blocks": Recurrence('"deltanet"', blocks=True),
    "RWKV-7, blocks": Recurrence('"rwkv7"', blocks=True),
    "transformer": Recurrence('"local-attention"', blocks=True),
}
"""Those of two layers first; the transformer has the blocks of the others, with attention for a cell.

Where the papers' blocks have a short convolution it is there: inside the cells of RG-LRU, mLSTM, Mamba-2 and DeltaNet,
and before that of minGRU. RWKV-7 reads the input before in another way, and the LRU none.
"""


class Widths(NamedTuple):
    """Units of a layer, or of the stream of blocks, with which a network has as many weights as others on such data."""

    words: int
    characters: int
    music: int
    grammar: int


WIDTHS = {
    "Elman": Widths(188, 322, 194, 80),
    LSTM: Widths(128, 160, 96, 40),
    "GRU": Widths(142, 186, 112, 46),
    "QRNN": Widths(146, 218, 120, 52),
    "SRU": Widths(172, 304, 168, 72),
    "recurrent highway": Widths(148, 198, 122, 50),
    "Mogrifier": Widths(108, 130, 74, 32),
    "sLSTM": Widths(152, 220, 128, 56),
    "minGRU": Widths(194, 382, 218, 94),
    "minLSTM": Widths(178, 310, 176, 76),
    "LSTM, blocks": Widths(96, 98, 64, 26),
    "minGRU, blocks": Widths(112, 122, 78, 32),
    "LRU, blocks": Widths(104, 108, 68, 28),
    "RG-LRU, blocks": Widths(104, 112, 72, 28),
    "mLSTM, blocks": Widths(104, 112, 72, 28),
    "Mamba-2, blocks": Widths(96, 102, 66, 26),
    "gated DeltaNet, blocks": Widths(104, 108, 68, 28),
    "RWKV-7, blocks": Widths(104, 108, 68, 24),
    "transformer": Widths(104, 112, 72, 28),
}
