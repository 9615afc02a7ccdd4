"""Text as data: where it is from, how it becomes tokens, how it is validated.

The options are shared by recipes, corpora and runs, and enter the digests of caches.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elman.config.data import Data
from elman.config.parts import register
from elman.config.record import TOKENS, Count, Fraction, Positive, Record
from elman.files import canonical_json


class Stage(Record, frozen=True, kw_only=True):
    """One stage of starting small: a number of epochs on sentences of which a share has an embedded clause.

    The last stage lasts until training ends; `sentences` None: as many as the options say.
    """

    epochs: Positive = 1
    complex: Fraction
    sentences: Positive | None = None


class GrammarOptions(Record, frozen=True, kw_only=True):
    """The text that a grammar generates; shared by recipes, `elman grammar generate` and caches.

    Deeper rules than `max_depth` are left out and the others scaled up; longer sentences than `max_length` are drawn
    again; without `complex` the rules decide. Each split is drawn with another seed.

    Attributes:
        rules: a grammar that comes with elman, or a file.
        sentences: training sentences.
        valid: validation sentences.
        test: test sentences.
        seed: seed of the draw.
        max_depth: the deepest embedding of clauses.
        max_length: words per sentence at most.
        complex: share of sentences with an embedded clause.
        stages: of starting small.
    """

    rules: str = "elman-1991"
    sentences: Positive = 10_000
    valid: Positive = 1_000
    test: Positive = 1_000
    seed: Count = 0
    max_depth: Count | None = None
    max_length: Positive | None = None
    complex: Fraction | None = None
    stages: tuple[Stage, ...] = ()


class SubwordOptions(Record, frozen=True, kw_only=True):
    """How subwords are found in the training text (`elman.data.text.subwords`).

    `bpe` is byte-pair encoding (Sennrich et al. 2016), `unigram` the unigram model (Kudo 2018). `size` counts pieces,
    the 256 bytes included; a small text may give fewer. `coverage` is the share of the text's characters that are
    pieces of their own; the others are spelt in bytes.
    """

    kind: Literal["bpe", "unigram"] = "bpe"
    size: Annotated[int, Meta(ge=300, le=1_000_000)] = 8000
    coverage: Annotated[float, Meta(gt=0.9, le=1.0)] = 0.9995


class TextOptions(Record, frozen=True, kw_only=True):
    """The rules by which a text becomes tokens and a vocabulary.

    Attributes:
        tokenisation: `words`: the text is tokenised already, split at white space and taken as it is; `raw`:
            ordinary text, by the rule of `elman.data.text.tokeniser.split_raw`; `characters`: every character is a
            token, with its combining marks, as a reader sees it (`elman.data.text.patterns.characters_of`); `bytes`:
            every byte is; `subwords`: pieces of words (`elman.data.text.subwords`).
        lowercase: fold capitals before anything is counted (never `<unk>` or `<eos>`).
        eos: `line`: every line ends with `<eos>`; `paragraph`: every block of lines between blank lines does,
            and a line break inside a block is a space; `none`: no `<eos>` at all, line breaks are spaces;
            `exact` (of characters, bytes and subwords): every line feed is an `<eos>` and nothing else is, so that
            the tokens give the text back exactly.
        min_count: words seen less often become `<unk>`.
        max_vocabulary: size of the vocabulary at most, `<unk>` and `<eos>` included.
        vocabulary_from: the splits whose words are counted; `init`: of training, and the words of the run of --init,
            which are never cut.
        valid_fraction, test_fraction: shares of a single file that are held out (folders bring their own splits).
        train_tokens: the training text ends with the line or paragraph in which this many tokens are reached.
        normalisation: Unicode normalisation of every line before anything else.
        ruby: `remove`: take the marks of Aozora Bunko out (`elman.data.text.passages.remove_ruby`).
        elisions: of `raw` text: an apostrophe before a letter ends a word, as in French and Italian (`l' homme`).
    """

    tokenisation: Literal["words", "raw", "characters", "bytes", "subwords"] = "words"
    lowercase: bool = False
    eos: Literal["line", "paragraph", "none", "exact"] = "line"
    min_count: Positive = 1
    max_vocabulary: Annotated[int, Meta(ge=3)] | None = None
    vocabulary_from: Literal["train", "all", "init"] = "train"
    valid_fraction: Fraction = 0.05
    test_fraction: Fraction = 0.05
    train_tokens: Positive | None = None
    normalisation: Literal["none", "NFC", "NFKC"] = "none"
    ruby: Literal["keep", "remove"] = "keep"
    elisions: bool = False
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

        if self.elisions and self.tokenisation != "raw":
            raise ValueError(
                f'elisions = true with tokenisation = "{self.tokenisation}": it is for "raw"; leave it out'
            )
        if self.train_tokens is not None and self.tokenisation == "subwords":
            raise ValueError(
                'train_tokens with tokenisation = "subwords": pieces are found in the whole training text; leave it out'
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
        """Whether tokens, rather than the text, are lowercased, so that output can keep the capitals of the text."""
        return self.lowercase and not self.open_vocabulary


WARM_UP = 100
"""Tokens after which a column that begins without context is close to one stream."""


class TextEvaluation(Record, frozen=True, kw_only=True):
    """How the validation text is read while training, in `streams` columns and windows of `length` tokens.

    Each column reads `warm_up` tokens, uncounted, before its part; `skip_first` leaves out the first token, as
    published figures do. Reported figures are computed from one stream.
    """

    streams: Positive = 10
    length: Positive = 70
    warm_up: Count = 0
    skip_first: bool = False

    @property
    def for_choosing(self) -> "TextEvaluation":
        """How the text is read to choose what is used in one stream: each column after 100 tokens or more."""
        return msgspec.structs.replace(self, warm_up=max(self.warm_up, WARM_UP))


class TextData(TextOptions, Data, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """A text in words, characters, bytes or subwords: a known corpus, a file or a folder, unless --data names another.

    With `grammar` the text is generated (`data/grammar/`). `digest`: of the data that the run was trained on, in
    the recipe of its folder; there `corpus` may be another text than the grammar's.
    """

    encoders = ("lookup", "characters")
    command = "generate"
    needs = "a text file, or a folder with train.txt, valid.txt and test.txt"
    task = "elman.tasks.text.task:TextTask"
    reporting = TOKENS

    corpus: str | None = None
    digest: str | None = None
    grammar: GrammarOptions | None = None
    evaluation: TextEvaluation = TextEvaluation()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corpus is not None and self.grammar is not None and self.digest is None:
            raise ValueError("both corpus and grammar name the text; keep one of them")


_NEUTRAL = (
    ("normalisation", "none"), ("ruby", "keep"), ("bleu_tokens", "none"), ("train_tokens", None), ("train_pairs", None),
    ("long_held_out", "cut"), ("elisions", False),
)  # fmt: skip
"""Keys that are no part of a digest where they have these values, which change nothing: recorded digests lack them."""


def identity(options: Record) -> str:
    """Options of texts or pairs as JSON, for digests; some keys are left out where they change nothing."""
    values: dict[str, Any] = msgspec.to_builtins(options)
    if values["tokenisation"] != "subwords":
        del values["subwords"]
    for key, nothing in _NEUTRAL:
        if values.get(key) == nothing:
            values.pop(key, None)
    return canonical_json(values)


register(TextData, Data)
