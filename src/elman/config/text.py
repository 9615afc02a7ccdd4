"""How a text becomes tokens: the record that recipes, corpora and runs share."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elman.files import canonical_json

# FOLDED data/grammar/options.py: Which sentences of which grammar: the record that recipes, `elman grammar generate` and caches share.
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Limit = Annotated[int, Meta(ge=0)]


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One stage of starting small: so many epochs on sentences of which a share is complex.

    Attributes:
        epochs: passes over its sentences; the last stage goes on until training ends.
        complex: share of sentences with a clause embedded in them.
        sentences: how many there are (None: as many as the options say).

    """

    epochs: Count = 1
    complex: Share
    sentences: Count | None = None


class GrammarOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The text that a grammar makes.

    Attributes:
        rules: the name of a grammar that comes with elman, or a file.
        sentences, valid, test: sentences of each split.
        seed: of the draw, another one for every split.
        max_depth: clauses within each other at most; rules that go deeper are left out and the others scaled up.
        max_length: words of a sentence at most; longer ones are drawn again.
        complex: share of sentences with a clause embedded in them (None: as the rules give them).
        stages: starting small: the training text in stages (empty: all at once).

    """

    rules: str = "elman-1991"
    sentences: Count = 10_000
    valid: Count = 1_000
    test: Count = 1_000
    seed: Annotated[int, Meta(ge=0)] = 0
    max_depth: Limit | None = None
    max_length: Count | None = None
    complex: Share | None = None
    stages: tuple[Stage, ...] = ()


# TARGET
Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class SubwordOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How subwords are found in the training text (`elman.data.text.subwords`).

    Attributes:
        kind: `bpe`: byte-pair encoding (Sennrich et al. 2016); `unigram`: the unigram model (Kudo 2018).
        size: how many pieces, the 256 bytes included; a small text may give fewer.
        coverage: the share of the text's characters that are pieces of their own; the others are spelt in bytes.

    """

    kind: Literal["bpe", "unigram"] = "bpe"
    size: Annotated[int, msgspec.Meta(ge=300)] = 8000
    coverage: Annotated[float, msgspec.Meta(gt=0.9, le=1.0)] = 0.9995


class TextOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules by which a text becomes tokens and a vocabulary.

    Attributes:
        tokenisation: `words`: the text is tokenised already, split at white space and taken as it is; `raw`:
            ordinary text, by the rule of `elman.data.text.tokeniser.split_raw`; `characters`: every character (Unicode
            code point) is a token; `bytes`: every byte is; `subwords`: pieces of words (`elman.data.text.subwords`).
        lowercase: fold capitals before anything is counted (never `<unk>` or `<eos>`).
        eos: `line`: every line ends with `<eos>`; `paragraph`: every block of lines between blank lines does,
            and a line break inside a block is a space; `none`: no `<eos>` at all, line breaks are spaces;
            `exact` (of characters, bytes and subwords): every line feed is an `<eos>` and nothing else is, so that
            the tokens give the text back exactly.
        min_count: words seen less often become `<unk>`.
        max_vocabulary: size of the vocabulary at most, `<unk>` and `<eos>` included.
        vocabulary_from: the splits whose words are counted: `train` alone or `all` of them.
        valid_fraction: share of a single file that is its validation split (folders bring their own splits).
        test_fraction: share of a single file that is its test split.
        normalisation: Unicode normalisation of every line before anything else.
        ruby: `remove`: take the marks of Aozora Bunko out (`elman.data.text.passages.remove_ruby`).
        subwords: how subwords are found.

    """

    tokenisation: Literal["words", "raw", "characters", "bytes", "subwords"] = "words"
    lowercase: bool = False
    eos: Literal["line", "paragraph", "none", "exact"] = "line"
    min_count: Annotated[int, msgspec.Meta(ge=1)] = 1
    max_vocabulary: Annotated[int, msgspec.Meta(ge=3)] | None = None
    vocabulary_from: Literal["train", "all"] = "train"
    valid_fraction: Fraction = 0.05
    test_fraction: Fraction = 0.05
    normalisation: Literal["none", "NFC", "NFKC"] = "none"
    ruby: Literal["keep", "remove"] = "keep"
    subwords: SubwordOptions = SubwordOptions()

    def __post_init__(self) -> None:
        if self.valid_fraction + self.test_fraction > 1:
            raise ValueError(
                f"valid_fraction {self.valid_fraction} and test_fraction {self.test_fraction} "
                "make more than the whole text; their sum may be 1 at most"
            )
        if self.eos == "exact" and not self.spelt:
            raise ValueError(
                f'eos = "exact" with tokenisation = "{self.tokenisation}": words leave out white space; use it with '
                'characters, bytes or subwords, or eos = "line"'
            )
        if self.open_vocabulary and (self.min_count > 1 or self.max_vocabulary is not None):
            raise ValueError(
                f'min_count and max_vocabulary with tokenisation = "{self.tokenisation}": its vocabulary spells every '
                "text and is never cut; leave both out"
            )

    @property
    def spelt(self) -> bool:
        """Whether tokens spell the text, spaces included, rather than being words."""
        return self.tokenisation in ("characters", "bytes", "subwords")

    @property
    def open_vocabulary(self) -> bool:
        """Whether every text can be spelt, so that no token is ever unknown."""
        return self.tokenisation in ("bytes", "subwords")

    @property
    def folds_tokens(self) -> bool:
        """Whether it is tokens that are put in small letters, so that they can be told as they stand in the text."""
        return self.lowercase and not self.open_vocabulary


def identity(options: TextOptions) -> str:
    """The options as JSON, for digests; keys that came later are left out where they change nothing."""
    values: dict[str, Any] = msgspec.to_builtins(options)
    if options.tokenisation != "subwords":
        del values["subwords"]
    for key, nothing in (("normalisation", "none"), ("ruby", "keep")):
        if values[key] == nothing:
            del values[key]
    return canonical_json(values)
