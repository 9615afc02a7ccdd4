"""The network: encoders, cells, recurrent cores, and the model they make up."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from elman.config.composition import BinaryTreeLSTM, Composition
from elman.config.initialisation import Initialisation
from elman.config.output import Output
from elman.config.parts import OneOf, Part
from elman.config.record import Depth, Nonlinearity, NonNegative, Positive, PositiveFloat, Rate, Reach, Record
from elman.network.cells.cell import Cell, Controller
from elman.network.cells.lstm import LSTM


class Cooccurrence(Record, frozen=True):
    """Vectors of the words that stand at most `window` tokens apart in the training text (`tasks/text/vectors.py`).

    `std`: the root of the mean square of their numbers.
    """

    window: Positive = 3
    std: PositiveFloat = 0.17


class Encoder(Part, frozen=True):
    """From symbols, frames of notes or real values to vectors."""

    folder = "elman.config.network"
    builder: ClassVar[str]


class Lookup(Encoder, frozen=True, tag="lookup"):
    """Word vectors; `cooccurrence`: in place of random ones training begins with those of words that stand together."""

    builder: ClassVar = "elman.network.encoders.lookup:Lookup"
    size: Positive
    dropout: Rate = 0.0
    word_dropout: Rate = 0.0
    scale: PositiveFloat = 1.0
    cooccurrence: Cooccurrence | None = None


class Characters(Encoder, frozen=True, tag="characters"):
    """Words by their spelling: `filters` gives the number of filters of each of the `widths`."""

    builder: ClassVar = "elman.network.encoders.characters:Characters"
    size: Positive = 15
    widths: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=1000)] = (1, 2, 3, 4, 5, 6)
    filters: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=1000)] = (25, 50, 75, 100, 125, 150)
    highways: Annotated[int, Meta(ge=0, le=1000)] = 1
    dropout: Rate = 0.0


class Frames(Encoder, frozen=True, tag="frames"):
    """A linear map of frames of notes."""

    builder: ClassVar = "elman.network.encoders.encoder:Frames"
    size: Positive
    dropout: Rate = 0.0
    scale: PositiveFloat = 1.0
    bias: bool = False


class Values(Encoder, frozen=True, tag="values"):
    """Real values as they are, or a linear map of them to `size` numbers."""

    builder: ClassVar = "elman.network.encoders.values:Values"
    size: Positive | None = None
    dropout: Rate = 0.0


class Core(Part, frozen=True):
    """What reads vectors one after another: everything between encoder and output layer.

    `reads`: the only kind of data that it is for, if there is one.
    """

    folder = "elman.config.network"
    builder: ClassVar[str]
    reads: ClassVar[str | None] = None


class Stack(Core, frozen=True, tag="stack"):
    """Layers of one cell, in a chain or with connections that skip layers; `biases`: bias vectors per gate.

    `input_dropout` and `recurrent_dropout` mask x and h in the products of every layer, by one mask for all gates, or
    with `gate_masks` one for each.
    """

    builder: ClassVar = "elman.network.cores.stack:build"
    sizes: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=1000)]
    cell: OneOf[Cell] = LSTM()
    connections: Literal["chain", "graves", "melis"] = "chain"
    biases: Literal[0, 1, 2] = 2
    weight_drop: Rate = 0.0
    input_dropout: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    gate_masks: bool = False
    between_dropout: Rate = 0.0
    output_dropout: Rate = 0.0


class Residual(Core, frozen=True, tag="residual"):
    """`depth` residual blocks of one width: a normalised recurrent layer, and a normalised feed-forward half.

    The layer may read a `convolution` over so many inputs of each channel, as in the blocks of Griffin and of minGRU.
    `feed_forward`: none, a layer of GELUs, or a gated one, whose inner width is `expansion` times the size. `dropout`
    masks what each half adds. The other keys are those of a stack.
    """

    builder: ClassVar = "elman.network.cores.residual:Residual"
    size: Positive
    depth: Depth = 2
    cell: OneOf[Cell] = LSTM()
    norm: Literal["rms", "layer"] = "rms"
    convolution: Reach | None = None
    feed_forward: Literal["none", "mlp", "glu"] = "glu"
    expansion: PositiveFloat = 3.0
    biases: Literal[0, 1, 2] = 1
    weight_drop: Rate = 0.0
    recurrent_dropout: Rate = 0.0
    dropout: Rate = 0.0
    output_dropout: Rate = 0.0


class FeedForward(Core, frozen=True, tag="window"):
    """Bengio's window model."""

    builder: ClassVar = "elman.network.cores.window:FeedForwardWindow"
    width: Positive
    size: Positive
    direct: bool = False
    output_dropout: Rate = 0.0


class Attentive(Core, frozen=True, tag="attentive"):
    """A stack with attention; `size` and the additive score's `score_size` are by default those of its last layer."""

    builder: ClassVar = "elman.network.cores.attentive:build"
    stack: Stack
    score: Literal["dot", "general", "additive"] = "general"
    size: Positive | None = None
    score_size: Positive | None = None
    feed: Literal["nothing", "output", "context"] = "nothing"
    output_dropout: Rate = 0.0


class MemoryLayer(Record, frozen=True):
    """A memory of `size` numbers per cell over the layer below (`network/cores/deep_memory.py`), and how heads look.

    `score_size`, of content scores, is by default the size.
    """

    size: Positive
    read: Literal["content", "location"] = "content"
    write: Literal["content", "location"] = "location"
    score_size: Positive | None = None
    output_dropout: Rate = 0.0


class Reader(Record, frozen=True):
    """The layers that read the source (`network/cores/source.py`); `stack.sizes` holds the size of each direction.

    `memories` are layers of memory over the last of them, whose controllers have the cell of the stack. Without an
    `encoder` the source is read with the target's vectors, which needs one vocabulary for both. `start`: each layer of
    the decoder begins with the final state of the reader's layer, or with a map of the last layer's.
    """

    stack: Stack
    encoder: Lookup | None = None
    bidirectional: bool = True
    memories: tuple[MemoryLayer, ...] = ()
    start: Literal["copy", "bridge"] = "copy"

    @property
    def memory_size(self) -> int:
        """The width of what the decoder attends to."""
        return self.memories[-1].size if self.memories else (1 + self.bidirectional) * self.stack.sizes[-1]


class Jordan(Core, frozen=True, tag="jordan"):
    """Jordan's network; `feedback`: the model's own output, or the true target."""

    builder: ClassVar = "elman.network.cores.jordan:Jordan"
    size: Positive
    feedback: Literal["output", "target"] = "output"
    nonlinearity: Nonlinearity = "tanh"
    decay: Rate = 0.0
    output_dropout: Rate = 0.0


class Reservoir(Core, frozen=True, tag="reservoir"):
    """Echo state network: the recurrent weights are random and fixed, and only the output layer is trained."""

    builder: ClassVar = "elman.network.cores.reservoir:Reservoir"
    size: Positive
    radius: PositiveFloat = 0.9
    leak: Annotated[float, Meta(gt=0, le=1)] = 1.0
    density: Annotated[float, Meta(gt=0, le=1)] = 0.1
    input_scale: PositiveFloat = 1.0
    bias_scale: NonNegative = 0.0
    output_dropout: Rate = 0.0


class TuringMachine(Core, frozen=True, tag="ntm"):
    """Neural Turing machine: `size` units of the controller, `rows` of `width` numbers, shifts up to `reach`."""

    builder: ClassVar = "elman.network.cores.ntm:TuringMachine"
    size: Positive
    controller: OneOf[Controller] = LSTM()
    rows: Positive = 128
    width: Positive = 20
    read_heads: Positive = 1
    write_heads: Positive = 1
    reach: Annotated[int, Meta(ge=0, le=1000)] = 1
    output_dropout: Rate = 0.0


class Recursive(Core, frozen=True, tag="recursive"):
    """A network over trees: nodes are vectors of `size` numbers, composed of those of their children.

    `leaves`: layers that read the sentence in both directions before, `stack.sizes` holding the size of each direction;
    None: the leaves are the words alone. `parser`: nodes have scores, by which trees are searched for, and the recipe
    has a table training.margin; without it trees are always given. `output_dropout`: of the vectors that are labelled
    and scored.
    """

    builder: ClassVar = "elman.network.trees.core:build"
    reads = "trees"
    size: Positive
    composition: OneOf[Composition] = BinaryTreeLSTM()
    leaves: Stack | None = None
    parser: bool = False
    output_dropout: Rate = 0.0


class Sentence(Core, frozen=True, tag="sentence"):
    """Layers that read a whole sentence, forwards or in both directions, before anything is predicted.

    `stack.sizes` holds the size of each direction; the layers are those of `Reader`.
    """

    builder: ClassVar = "elman.network.cores.sentence:build"
    reads = "tags"
    stack: Stack
    bidirectional: bool = True


class Model(Record, frozen=True):
    """The network. `masks`: dropout masks held over time ("locked", Gal) or drawn at every step ("fresh", Zaremba).

    `source`: the layers that read the source, for an attentive core, or for a stack that continues from its last state.
    """

    encoder: OneOf[Encoder]
    core: OneOf[Core]
    output: Output = Output()
    source: Reader | None = None
    initialisation: Initialisation = Initialisation()
    masks: Literal["locked", "fresh"] = "locked"

    @property
    def attends(self) -> bool:
        """Whether its core has attention to a source."""
        return isinstance(self.core, Attentive)
