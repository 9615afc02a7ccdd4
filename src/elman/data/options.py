"""How a text becomes tokens: the record that recipes, corpora and runs share."""

from typing import Annotated, Literal

import msgspec

Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class TextOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules by which a text becomes tokens and a vocabulary.

    Attributes:
        tokenisation: `words`: the text is tokenised already, split at white space and taken as it is; `raw`:
            ordinary text, by the rule of `elman.data.text.split_raw`; `characters`: every character is a
            token.
        lowercase: fold capitals before anything is counted (never `<unk>` or `<eos>`).
        eos: `line`: every line ends with `<eos>`; `paragraph`: every block of lines between blank lines does,
            and a line break inside a block is a space; `none`: no `<eos>` at all, line breaks are spaces.
        min_count: words seen less often become `<unk>`.
        max_vocabulary: size of the vocabulary at most, `<unk>` and `<eos>` included.
        vocabulary_from: the splits whose words are counted: `train` alone or `all` of them.
        valid_fraction: share of a single file that is its validation split (folders bring their own splits).
        test_fraction: share of a single file that is its test split.

    """

    tokenisation: Literal["words", "raw", "characters"] = "words"
    lowercase: bool = False
    eos: Literal["line", "paragraph", "none"] = "line"
    min_count: Annotated[int, msgspec.Meta(ge=1)] = 1
    max_vocabulary: Annotated[int, msgspec.Meta(ge=3)] | None = None
    vocabulary_from: Literal["train", "all"] = "train"
    valid_fraction: Fraction = 0.05
    test_fraction: Fraction = 0.05

    def __post_init__(self) -> None:
        if self.valid_fraction + self.test_fraction > 1:
            raise ValueError(
                f"valid_fraction {self.valid_fraction} and test_fraction {self.test_fraction} "
                "make more than the whole text; their sum may be 1 at most"
            )
