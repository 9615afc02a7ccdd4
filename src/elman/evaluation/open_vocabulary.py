"""Reading a text with its unknown words spelled, where the model reads spelling and the text tells them apart."""

from typing import NamedTuple

import numpy as np

from elman.data.corpus import Split
from elman.data.windows import EvaluationWindows
from elman.encoders.characters import Characters
from elman.model import LanguageModel


class Sentences(NamedTuple):
    """The sentences of a text as a model reads them.

    Attributes:
        model: one that reads spelling knows the text's unknown words, too.
        words: the tokens as they stand in the text.
        ids: what is predicted, [n] each; unknown words are `<unk>`.
        inputs: what is read, [n] each: `ids`, but to a model that reads spelling unknown words have their own numbers.

    """

    model: LanguageModel
    words: list[list[str]]
    ids: list[np.ndarray]
    inputs: list[np.ndarray]


def reading(
    model: LanguageModel,
    split: Split,
    first: int,
    *,
    streams: int = 1,
    length: int = 70,
    warm_up: int = 0,
    skip_first: bool = False,
) -> tuple[LanguageModel, EvaluationWindows]:
    """The model that knows the split's words, and its windows; arguments as for `EvaluationWindows`.

    Unknown words are read by their spelling if `split.inputs` has numbers for them and the encoder reads spelling, else
    as `<unk>`. As targets they are `<unk>` always.
    """
    inputs = split.inputs if isinstance(model.encoder, Characters) else None
    windows = EvaluationWindows(
        split.tokens, first, streams=streams, length=length, warm_up=warm_up, skip_first=skip_first, inputs=inputs
    )
    return (model if inputs is None else model.knowing(split.unknown_words)), windows
