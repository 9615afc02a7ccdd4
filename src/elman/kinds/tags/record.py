"""Tagged sentences as data: every word has a tag, such as a part of speech or its place in a chunk."""

from typing import Annotated, Literal

from msgspec import Meta

from elman.config.data import Data
from elman.config.record import Count, Positive, Record, Reporting
from elman.kinds.pairs.record import PairOptions


class TagOptions(Record, frozen=True, kw_only=True):
    """How files become words and tags.

    Attributes:
        form: `columns`: a word and its tag per line, sentences divided by blank lines; `conllu`: CoNLL-U; `joined`:
            a sentence per line, each word with its tag behind the last `_`, `/` or `|` (`word_TAG`); `trees`: a
            treebank in brackets.
        word_column, tag_column: the columns of words and of tags, the first being 0; None: the first and the last, of
            CoNLL-U FORM (1) and UPOS (3).
        tags: of a treebank: the parts of speech of words (`parts`), or chunks in the form IOB2 (`chunks`), which are
            the constituents whose children are all words.
        split, valid, test: which sentences of a single file are held out, and how many, as of pairs: those that have
            the smallest SHA-256 (`hash`), or the `last`. Folders that bring their own splits are taken as they are.
        lowercase: fold capitals of words, never of tags.
        min_count: words seen less often in training become `<unk>`.
        max_vocabulary: greatest number of words.
        max_words: longer training sentences are left out.
    """

    form: Literal["columns", "conllu", "joined", "trees"] = "columns"
    word_column: Count | None = None
    tag_column: Count | None = None
    tags: Literal["parts", "chunks"] = "parts"
    split: Literal["hash", "last"] = "hash"
    valid: Positive = 300
    test: Positive = 300
    lowercase: bool = False
    min_count: Positive = 2
    max_vocabulary: Annotated[int, Meta(ge=4)] | None = None
    max_words: Positive = 200

    def __post_init__(self) -> None:
        if self.form != "trees" and self.tags != "parts":
            raise ValueError(f'tags = "{self.tags}" is for treebanks; set form = "trees", or leave tags out')
        if self.form in ("joined", "trees") and (self.word_column, self.tag_column) != (None, None):
            what = "a treebank" if self.form == "trees" else "a text of joined tags"
            raise ValueError(f'{what} has no columns; leave word_column and tag_column out, or set form = "columns"')

    @property
    def files(self) -> PairOptions:
        """How the files are found and divided: as files of trees, so that both hold out the same sentences."""
        return PairOptions(form="trees", split=self.split, valid=self.valid, test=self.test)


class TagEvaluation(Record, frozen=True, kw_only=True):
    """How a split is read in evaluation: `streams` sentences side by side, which changes nothing but the speed."""

    streams: Positive = 32


class TagData(TagOptions, Data, frozen=True, kw_only=True, tag_field="kind", tag="tags"):
    """Sentences whose words have tags; `corpus` is a file or a folder, unless --data names another."""

    encoders = ("lookup", "characters")
    command = "tag --text SENTENCE"
    proposal = "elman.kinds.tags.proposal"
    needs = "words and tags in columns or trees in brackets, in one file or a folder with train, valid and test"
    task = "elman.kinds.tags.task:TagTask"
    own_core = "sentence"
    reporting = Reporting(
        "NLL",
        "nll",
        "word",
        "NLL is the mean negative log-likelihood of the tag of a word, given its sentence, in nats; accuracy is the"
        " share of words whose most probable tag is right.",
        ("accuracy", "accuracy"),
        (("lines", "sentences"), ("unknown", "unknown words")),
        (
            ("nll", "nats/word", ".4f"),
            ("accuracy", "accuracy", ".4f"),
            ("tokens", "words", ","),
            ("unknown", "unknown", ","),
            ("pairs", "sentences", ","),
        ),
    )

    corpus: str | None = None
    digest: str | None = None
    evaluation: TagEvaluation = TagEvaluation()
