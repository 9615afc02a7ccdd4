"""One split of a corpus: its ids, and what is counted of its text."""

import dataclasses

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class Split:
    """One split of a corpus.

    Attributes:
        name: `train`, `valid` or `test`.
        tokens: the ids, [N] int32, memory-mapped and read-only.
        unknown: how many of them are `<unk>`, because the text says so or because the word is not known.
        characters: how many characters of text the tokens stand for, one for each `<eos>` included.
        lines: how many lines were read (one longer than 64 KiB counts as several).
        sha256: digest of the source file.
        inputs: what a model that reads spelling reads instead of `tokens`, where that was asked for: unknown words
            have numbers from V on ([N] int32; `elman.data.lexicon.spelled_split`).
        unknown_words: the words of these numbers.
        num_bytes: the bytes of these characters in UTF-8.
        num_words: words and line ends, as `elman.data.text.Passage` counts them.
        unseparated: letters in clauses without spaces; many of them, and `num_words` says nothing.

    """

    name: str
    tokens: npt.NDArray[np.int32]
    unknown: int
    characters: int
    lines: int
    sha256: str
    inputs: npt.NDArray[np.int32] | None = None
    unknown_words: tuple[str, ...] = ()
    num_bytes: int = 0
    num_words: int = 0
    unseparated: int = 0
