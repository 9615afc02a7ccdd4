"""Text as it comes, encoded a sentence at a time with a vocabulary that is there."""

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from elman.data.options import TextOptions
from elman.data.subwords import Subwords
from elman.data.text import Line, passages
from elman.data.tokeniser import fold
from elman.data.vocabulary import Vocabulary


def encode_lines(
    lines: Iterable[str], vocabulary: Vocabulary, options: TextOptions, subwords: Subwords | None = None
) -> Iterator[tuple[list[str], npt.NDArray[np.int32]]]:
    """Encode text as it comes, a sentence at a time: what `<eos>` ends, or without `<eos>` a line.

    With `eos = "exact"` a line has its `<eos>` only where it has its line feed.

    Yields:
        The tokens as they stand in the text (capitals kept but in subwords, unknown words shown) and their ids,
        [N] int32.

    Raises:
        UserError: a word is not known and the vocabulary has no `<unk>`.

    """
    as_written = msgspec.structs.replace(options, lowercase=False) if options.folds_tokens else options
    sentence: list[str] = []
    for passage in passages((Line(line, True) for line in lines), as_written, subwords):
        sentence += passage.words
        if (passage.closed or options.eos in ("none", "exact")) and sentence:
            yield sentence, vocabulary.encode(fold(sentence) if options.folds_tokens else sentence)
            sentence = []
