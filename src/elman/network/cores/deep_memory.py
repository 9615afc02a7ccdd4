"""A layer of memory: a controller reads the layer below it, cell by cell, and writes a memory of as many cells.

Meng, Lu, Tu, Li & Liu, A deep memory-based architecture for sequence-to-sequence learning, arXiv:1506.06442 (2015):
the representation of the source is transformed from one memory into the next by a controller, an LSTM, with a read
head and a write head that address cells by location or by content; the decoder attends to the last memory.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elman import config
from elman.config.record import Positive, Rate, Record
from elman.network.cells.cell import Cell, LayerState, checked
from elman.network.cores.attentive import Additive, attend
from elman.network.cores.layer import Layer, Padding, read_padded
from elman.network.cores.ntm import written
from elman.network.dropout import Dropout
from elman.network.initialisation import fill


class MemoryLayer(Record, frozen=True):
    """A memory of `size` numbers per cell over the layer below, and how its heads look.

    `score_size`, of content scores, is by default the size.
    """

    size: Positive
    read: Literal["content", "location"] = "content"
    write: Literal["content", "location"] = "location"
    score_size: Positive | None = None
    output_dropout: Rate = 0.0


class DeepMemory(nn.Module):
    """A memory N of S cells of H numbers, written by a controller h that reads a memory M of S cells.

    At step t of S:

        r_t = M(t)                                   read by location: the cells in order
        r_t = sum_s a_t(s) M(s)                      read by content, a_t = softmax_s score(h_{t-1}, M(s))
        h_t = controller(r_t, h_{t-1})
        N(t) = h_t                                   written by location: the cells in order
        N(s) <- N(s) (1 - w_t(s) e_t) + w_t(s) v_t   written by content, w_t = softmax_s score'(h_t, M(s))

    with e_t = sigmoid(W_e h_t + b_e) and v_t = tanh(W_v h_t + b_v); a memory written by content begins with zeros.

    From the paper are the stacked memories, the controller between them, the two kinds of addressing for either head,
    and the decoder's attention to the last memory. Chosen here: the score of Bahdanau et al. 2015, which the
    paper generalises; what is written by location is h_t itself, so that with both heads by location the layer is an
    ordinary recurrent one; erasing and adding follow the neural Turing machine (`ntm.written`); and the
    head that writes by content compares cells of the layer below, since a new memory's cells are all alike. Padded
    cells are neither read nor written by content, and the state stays what it was at the source's end.
    """

    def __init__(self, record: MemoryLayer, cell: Cell, below: int, *, locked: bool) -> None:
        super().__init__()
        self.layer = Layer(checked(cell), below, record.size)
        score_size = record.score_size or record.size
        self.reading = Additive(record.size, below, score_size) if record.read == "content" else None
        self.writing = Additive(record.size, below, score_size) if record.write == "content" else None
        self.change = nn.Linear(record.size, 2 * record.size) if record.write == "content" else None
        self.output_dropout = Dropout(record.output_dropout, locked=locked)

    def forward(
        self, below: Float[Tensor, "S B M"], mask: Tensor, padding: Padding
    ) -> tuple[Float[Tensor, "S B H"], LayerState]:
        """The memory over the one below, and the controller's state at the end of each source; mask [S, B]."""
        if self.reading is None and self.writing is None:
            memory, state = read_padded(self.layer, below, padding, backward=False)
        else:
            memory, state = self._step_by_step(below, mask)
        return self.output_dropout(memory), state

    def _step_by_step(self, below: Tensor, mask: Tensor) -> tuple[Tensor, LayerState]:
        cells, among = below.transpose(0, 1).contiguous(), mask.t().contiguous()
        read, write = (_by_content(head, cells, among) for head in (self.reading, self.writing))
        weights, state = self.layer.weights(), self.layer.begin(below.shape[1])
        memory = cells.new_zeros(*cells.shape[:2], self.layer.hidden_size)
        hidden = []
        for given, flags in zip(below, mask.unsqueeze(-1), strict=True):
            if read is not None:
                given = read(state[0])[0].squeeze(1)
            after = self.layer.cell.step(weights, given, state)
            state = tuple(torch.where(flags, new, old) for new, old in zip(after, state, strict=True))
            hidden.append(state[0])
            if write is not None:
                assert self.change is not None
                looks = write(state[0])[1]
                erase, add = self.change(state[0]).unsqueeze(1).chunk(2, dim=-1)
                memory = written(memory, looks * flags.unsqueeze(-1), erase.sigmoid(), add.tanh())
        return (torch.stack(hidden) if write is None else memory.transpose(0, 1)), state

    def initialise(self, rules: config.Initialisation) -> None:
        """Fill the controller, then the heads as inputs of a layer; the biases of what is written are zero."""
        self.layer.initialise(rules)
        for head in (self.reading, self.writing, self.change):
            for parameter in () if head is None else head.parameters():
                bias = head is self.change and parameter.ndim == 1
                fill(parameter, config.Zeros() if bias else rules.input, parameter.shape[-1])


def _by_content(
    head: Additive | None, cells: Tensor, among: Tensor
) -> Callable[[Tensor], tuple[Tensor, Tensor]] | None:
    """From a query [B, H] to what a head reads, [B, 1, M], and its weights, [B, 1, S]; None: a head by location."""
    if head is None:
        return None
    keys = head.keys(cells)
    return lambda query: attend(head.scores(query.unsqueeze(1), keys), cells, among)
