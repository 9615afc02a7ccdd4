"""What scoring asks of a model of text, whatever it is: a run, an n-gram model, a model of transformers."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from elman.config.text import TextOptions
from elman.data.catalog.known import locate
from elman.data.lines import lines_of
from elman.data.minimal_pairs import Pair
from elman.data.text.corpus import ALL, Split, split_named
from elman.data.text.passages import TokenCounts, unseparated
from elman.data.text.reading import Sentence, TextReader
from elman.data.text.sources import Section, find_sections
from elman.data.text.tokeniser import Tokeniser
from elman.data.text.utf8 import read_lines, to_bytes
from elman.data.text.vocabulary import EOS, UNK, Vocabulary
from elman.errors import UserError, notice
from elman.evaluation.minimal_pairs import CodedPair
from elman.evaluation.ngram.arpa import read_arpa
from elman.evaluation.ngram.model import BEGIN, END
from elman.evaluation.perplexity import Score, text_result
from elman.evaluation.result import Result
from elman.evaluation.scoring import Prediction, Sentences
from elman.evaluation.statistics import Floats
from elman.jobs import Advance, advancing
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.hub import shown
from elman.tasks.run import foreign_kind
from elman.tasks.text.run import TextRun

Scored: TypeAlias = Iterator[tuple[Sentence, np.ndarray]]
Predicted: TypeAlias = Iterator[tuple[Sentence, Prediction]]  # each sentence and how its tokens were predicted
Pll: TypeAlias = Literal["within_word_l2r", "original"]


States: TypeAlias = tuple[list[str], np.ndarray, list[np.ndarray]]
"""The tokens of a sentence, their ids [n], and the states of some levels after each of them, [n, H] each."""


class Whole(NamedTuple):
    """A text as a model reads it.

    Attributes:
        log_probs: of its tokens (nats), [n]; NaN where one is not predicted.
        text: the text that these are of.
        unknown: how many of them the vocabulary lacks.
    """

    log_probs: np.ndarray
    text: str
    unknown: int


class Foreign:
    """A model that elman did not train: it scores texts, sentences independent of each other.

    Attributes:
        path: what the model is called.
        spaces: the tokens that begin with white space and so end the word before (`Prediction.space`).
        counts: whether the vocabulary has how often the training text had each word.
        word_ends: whether by default the end of a word counts as part of it (`elman.evaluation.word_ends`).
    """

    kind, what = "text", "an n-gram model"
    counts = word_ends = False
    spaces: Sequence[int] = ()
    asked_of_text: tuple[str, ...] = ()
    options: TextOptions
    vocabulary: Vocabulary

    def __init__(self, path: Path) -> None:
        self.path, self.title = shown(path), path.name

    @property
    def tokeniser(self) -> Tokeniser:
        return Tokeniser(self.options)

    def as_read(self, sentences: Iterable[Sentence]) -> Sentences:
        return Sentences(None, ((sentence, sentence.ids) for sentence in sentences))

    def reader(
        self, name: str = "the text", *, as_is: bool = False, leave_out: bool = False, cure: str = "take it out"
    ) -> TextReader:
        return TextReader(self.vocabulary, self.tokeniser, as_is=as_is, leave_out=leave_out, name=name, cure=cure)

    def predict_text(self, text: Sentences, *, document: bool = False, batch_size: int = 32) -> Predicted:
        """The prediction of each sentence; raises UserError with `document`."""
        raise NotImplementedError

    def score_text(self, text: Sentences, *, document: bool = False, batch_size: int = 32) -> Scored:
        """The log-probabilities (nats) of each sentence; raises UserError with `document`."""
        for sentence, found in self.predict_text(text, document=document, batch_size=batch_size):
            yield sentence, found.log_prob

    def score(self, lines: Iterable[str] | str, *, document: bool = False) -> Iterator[tuple[list[str], np.ndarray]]:
        """The tokens of every text and their log-probabilities (nats); a string is the lines that it holds."""
        reader = self.reader()
        split = reader.sentences(lines_of(lines)) if isinstance(lines, str) else map(reader.complete, lines)
        for sentence, log_probs in self.score_text(self.as_read(split), document=document):
            yield sentence.tokens, log_probs

    def read_whole(self, lines: Sequence[str], stride: int | None, advance: Advance = None) -> tuple[Whole, str]:
        """The log-probabilities of the lines of a text, and what the context of its tokens is."""
        raise NotImplementedError

    def evaluate(self, options: EvaluationOptions, advance: Advance = None) -> Result:
        """Perplexity of a split of a text, per token, character, byte and word (`elman.evaluation.perplexity`).

        Words and the ends of lines are counted as for runs. Raises UserError where no text is named.
        """
        options.require(self.kind, *self.asked_of_text, what=self.what)
        if options.data is None:
            raise UserError(f"{self.path}: elman did not train it and knows no text for it; give one with --data")
        sections = sections_of(options.data, options.split, self.options)
        read = (read_lines(one.files, one.start, one.stop, self.options) for one in sections)
        found, context = self.read_whole([line.text for lines in read for line in lines], options.stride, advance)
        counted = found.log_probs[~np.isnan(found.log_probs)]
        text, ends = found.text, found.text.count("\n")
        return text_result(
            Score(-float(counted.sum(dtype=np.float64)), len(counted)),
            Split(
                name=options.split,
                tokens=np.empty(0, np.int32),
                unknown=found.unknown,
                characters=len(text),
                num_bytes=len(to_bytes(text)),
                num_words=len(text.split()) + ends,
                unseparated=unseparated(text),
                lines=ends,
                first=TokenCounts(),
                sha256="",
            ),
            context=context,
            method="static",
            data=str(options.data),
        )

    def states(self, text: Sentences, layers: Sequence[int]) -> Iterator[States]:  # noqa: ARG002
        """Raises UserError: only networks have hidden states."""
        raise self._without_states

    @property
    def num_levels(self) -> int:
        raise self._without_states

    def word_vectors(self, side: str) -> torch.Tensor:  # noqa: ARG002
        raise self._without_states

    @property
    def _without_states(self) -> UserError:
        return UserError(f"{self.path}: an n-gram model has no states and no vectors; give a run or hf://NAME")

    def independent(self, document: bool) -> None:
        """Raise UserError where sentences are to be read as one document."""
        if document:
            raise UserError(f"{self.path}: its sentences are read independent of each other; leave --document out")


TextModel: TypeAlias = TextRun | Foreign  # what scores text


class NGramText(Foreign):
    """An n-gram model of an ARPA file; every sentence is read after `<s>`, and its end is predicted."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.model = read_arpa(path)
        words = [EOS if word == END else word for word in self.model.words if word != BEGIN]
        self.options = TextOptions(eos="none" if EOS not in words else "line")
        self.vocabulary = Vocabulary(tuple(words), (0,) * len(words))

    def predict_text(self, text: Sentences, *, document: bool = False, batch_size: int = 32) -> Predicted:  # noqa: ARG002
        """The prediction of each sentence, without ranks and entropies."""
        self.independent(document)
        for sentence, _ in text.items:
            log_prob, _ = self.model.score(self.model.encode(UNK if w in (BEGIN, END) else w for w in sentence.read))
            yield sentence, unranked(log_prob.astype(np.float32))

    def read_whole(self, lines: Sequence[str], stride: int | None, advance: Advance = None) -> tuple[Whole, str]:  # noqa: ARG002
        """The log-probabilities, text and unknown tokens of all lines, each read by itself with its end.

        What is left out of the words has no probability, and is not in the text either; notices state it.
        """
        reader, found, text, unknown = self.reader(), [np.empty(0, np.float32)], list[str](), 0
        scored = self.score_text(self.as_read(reader.sentences(lines)))
        for sentence, log_probs in advancing(scored, len(lines), advance):
            found.append(log_probs)
            unknown += sum(sentence.unknown_tokens)
            inner, end = (sentence.read[:-1], "\n") if sentence.read[-1:] == [EOS] else (sentence.read, " ")
            words = (
                word for word in sentence.words(self.tokeniser) if word.read.start < min(word.read.stop, len(inner))
            )
            text.append(" ".join("".join(sentence.tokens[word.read]) for word in words) + end)
        for line in reader.report():
            notice(line)
        return Whole(np.concatenate(found), "".join(text), unknown), "sentences"


def sections_of(source: str | Path, split: str, options: TextOptions) -> list[Section]:
    """Where a split of a corpus is, as runs with these options read it; raises UserError where it has none.

    `all` is every split of the corpus.
    """
    sections = find_sections(locate(str(source), "text"), options)
    if split == ALL:
        return list(sections.values())
    return [split_named(sections, split, source)]


def unranked(log_prob: np.ndarray, space: np.ndarray | None = None) -> Prediction:
    """A prediction [n] that has no ranks and entropies."""
    nothing = np.full(len(log_prob) + 1, np.nan, np.float32)
    return Prediction(log_prob, np.zeros(len(log_prob), np.int64), nothing, nothing if space is None else space)


def open_foreign(folder: Path, device: torch.device | str = "cpu", name: Path | str | None = None) -> Foreign | None:
    """An ARPA file (`.arpa`, `.arpa.gz`) or a folder of transformers as a model of text; None for anything else.

    `name`: what it is called, such as `hf://USER/NAME`; None: by its path.
    """
    kind = foreign_kind(folder)
    if kind == "a model of transformers":
        from elman.tasks.text.pretrained import Pretrained

        return Pretrained(Path(name or folder), folder, device)
    return NGramText(folder) if kind else None


def cut(reader: TextReader, text: str, *, ends: bool) -> Sentence:
    """A text as one sentence, with its end where the model predicts ends, or without it."""
    if ends:
        return reader.complete(text)
    found = reader.one(text)
    if found.read[-1:] != [EOS]:
        return found
    return found._replace(
        pieces=found.pieces[:-1],
        starts=found.starts[:-1],
        unknown=found.unknown[:-1],
        read=found.read[:-1],
        ids=found.ids[:-1],
    )


def pair_scores(model: TextModel, pairs: Sequence[Pair], advance: Advance = None) -> tuple[list[CodedPair], Floats]:
    """Minimal pairs as a model that is no run reads them, and log-probabilities (nats) [n, 2]; NaN: not distinguished.

    Of a pair that ends with a word in the midst of a sentence the end of that word is scored too, where tokens spell.
    """
    reader, coded = model.reader(), list[CodedPair]()
    sides = list[Sentence]()
    for pair in pairs:
        good, bad = (cut(reader, text, ends=pair.whole) for text in (pair.good, pair.bad))
        unknown = tuple(dict.fromkeys([*good.lacking, *bad.lacking]))
        same = np.array_equal(good.ids, bad.ids)
        coded.append(CodedPair(pair.phenomenon, pair.field, good.ids, bad.ids, (good.ids, bad.ids), unknown, same))
        sides += [good, bad]
    sums, read = list[float](), model.as_read(sides)
    spaced = bool(model.spaces) and not all(pair.whole for pair in pairs)
    predicted = model.predict_text(read) if spaced else ((one, unranked(p)) for one, p in model.score_text(read))
    for number, (_, found) in enumerate(advancing(predicted, len(sides), advance)):
        ends = spaced and not pairs[number // 2].whole
        sums.append(float(np.nansum(found.log_prob, dtype=np.float64)) + (float(found.space[-1]) if ends else 0.0))
    scores = np.array(sums).reshape(-1, 2)
    scores[[one.same for one in coded]] = np.nan
    return coded, scores
