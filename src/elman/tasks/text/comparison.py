"""One text under two runs, word by word, where their tokens or vocabularies differ.

A word is what white space separates, with the end of its line; its log-probability is the sum over its tokens, of
subwords with the end of the word (`elman.evaluation.word_ends`). Both runs must read the same words, so that both
assign probabilities to the same events. Unknown words are left out for both, or share the probability of `<unk>`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from elman.config.text import TextOptions
from elman.data.text.corpus import ALL
from elman.data.text.lacking import refusal, require_known
from elman.data.text.passages import clean, passages
from elman.data.text.sentences import fit, spelled_sentences
from elman.data.text.sources import Section
from elman.data.text.tokeniser import Tokeniser, fold, spelt, texts_of, word_slices, word_starts
from elman.data.text.utf8 import read_lines
from elman.data.text.vocabulary import EOS, UNK
from elman.data.windows import EvaluationWindows
from elman.errors import UserError, notice
from elman.evaluation.perplexity import token_and_space_log_probs, token_log_probs
from elman.evaluation.scoring import Treatment, score_sentences
from elman.evaluation.statistics import Floats
from elman.evaluation.word_ends import ends_moved
from elman.jobs import Advance, advancing
from elman.network.model import LanguageModel
from elman.tasks.text.model import TextModel, cut, sections_of
from elman.tasks.text.run import TextRun

Counts: TypeAlias = npt.NDArray[np.int64]


class Word(NamedTuple):
    """A word as a run reads it, whether the end of a line or sentence follows, and its place among the tokens."""

    text: str
    ends: bool
    tokens: slice


class Words(NamedTuple):
    """The words of a text under a run.

    Attributes:
        words: as the run reads them.
        log_probs: of each word (nats), [n].
        unknown: how many tokens of each word are unknown, [n].
        types: how many different tokens of the text are unknown.
        line_ends: how many tokens of each word are `<eos>`, at the ends of blank lines too, [n].
    """

    words: list[Word]
    log_probs: Floats
    unknown: Counts
    types: int
    line_ends: Counts

    def at(self, places: Sequence[int]) -> "Words":
        words = [self.words[one] for one in places]
        return Words(words, self.log_probs[places], self.unknown[places], self.types, self.line_ends[places])


def words_of(tokens: Sequence[str], texts: Iterable[str], options: TextOptions) -> list[Word]:
    """The words that tokens make up; `texts` are what was tokenised, cleaned by the same options."""
    if options.spelt:
        found = word_slices(word_starts(tokens, options)) if tokens else []
        return [Word(spelt(tokens[one], options), _closed(tokens[one], options), one) for one in found]
    parts = Tokeniser(options).parts
    written = (fold([word])[0] if options.lowercase else word for text in texts for word in parts(text))
    # Where the text has the word <eos> itself, it is the token that ends lines; ordinary text is cut at its marks.
    return list(_spaced(tokens, (word for word in written if word != EOS or options.tokenisation != "words")))


def _closed(tokens: Sequence[str], options: TextOptions) -> bool:
    """Whether `<eos>` follows the last token that is no white space."""
    pairs = zip(reversed(tokens), reversed(texts_of(tokens, options)), strict=True)
    last = next((token for token, text in pairs if not text.isspace()), "")
    return last == EOS


def _spaced(tokens: Sequence[str], written: Iterator[str]) -> Iterator[Word]:
    """Tokens of words, each a part of a written word; line ends belong to the word before them, or to the first."""
    at, begin = 0, 0
    while at < len(tokens):
        while at < len(tokens) and tokens[at] == EOS:
            at += 1
        if at == len(tokens):
            yield Word(EOS, True, slice(begin, at))
            return
        word = next(written)
        left = len(word)
        while left > 0:
            left -= len(tokens[at])
            at += 1
        while at < len(tokens) and tokens[at] == EOS:
            at += 1
        part = slice(begin, at)
        yield Word(word, tokens[at - 1] == EOS, part)
        begin = at


def say_other_splits(runs: Sequence[TextRun], split: str) -> None:
    """A notice for each run whose own split of this name differs from the first run's, which all of them read.

    Such a run may have been trained on it. The splits are the same bytes by the digests in data.json.
    """
    first, *others = runs
    for run in others:
        (theirs, ours), options = (_digests(one, split) for one in (run, first)), (run.options, first.options)
        if theirs != ours or len({tuple(sections_of(first.source, split, one)) for one in options}) > 1:
            notice(f"{run.path} has another {split} split; all runs read the one of {first.path}")


def _digests(run: TextRun, split: str) -> list[str | None]:
    """SHA-256 of the files of a split, or of all."""
    return [facts.get("sha256") for name, facts in run.facts.get("splits", {}).items() if split in (ALL, name)]


def read_words(run: TextRun, sections: Sequence[Section], streams: int = 1, advance: Advance = None) -> Words:
    """The words of sections of files under a run, each in the context of all before it."""
    tokens, texts = list[str](), list[str]()
    for one in sections:
        lines = list(read_lines(one.files, one.start, one.stop, run.options))
        read = passages(lines, run.options, run.tokeniser.subwords)
        words = [word for passage in read for word in passage.words]
        require_known(words, run.vocabulary, run.options, one)
        tokens += words
        texts.append("".join(clean(line.text, run.options) for line in lines))
    model, (inputs,) = _inputs(run, [tokens])
    ids = run.vocabulary.encode(tokens)
    windows = EvaluationWindows(ids, run.first, streams=streams, inputs=inputs if run.reads_spelling else None)
    found = words_of(tokens, texts, run.options)
    if not run.spaces:
        return _words(run, tokens, found, token_log_probs(model, windows, advance))
    log_probs, space = token_and_space_log_probs(model, windows, run.spaces, advance)
    begins = [word.tokens.start for word in found]
    return _words(run, tokens, found, ends_moved(log_probs, space, tokens, begins, run.options))


def _inputs(run: TextRun, sentences: Sequence[Sequence[str]]) -> tuple[LanguageModel, list[npt.NDArray[np.integer]]]:
    """The numbers of tokens as they are read, and the model that knows the unknown words if it reads spelling."""
    if not run.reads_spelling:
        return run.model, [run.vocabulary.encode(tokens) for tokens in sentences]
    inputs, unknown = spelled_sentences(sentences, run.vocabulary)
    return (run.model.knowing(unknown) if unknown else run.model), [*inputs]


def _words(run: TextRun, tokens: Sequence[str], words: list[Word], log_probs: npt.NDArray[np.floating]) -> Words:
    unknown = _unknown(run, tokens)
    starts = np.array([word.tokens.start for word in words], dtype=np.intp)
    if not words:
        return Words([], np.zeros(0), unknown, 0, np.zeros(0, dtype=np.int64))
    sums = np.add.reduceat(log_probs.astype(np.float64), starts)
    ends = np.array([token == EOS for token in tokens], dtype=np.int64)
    types = _types(tokens, unknown)
    return Words(words, sums, np.add.reduceat(unknown, starts), types, np.add.reduceat(ends, starts))


def _unknown(run: TextRun, tokens: Sequence[str]) -> Counts:
    return np.array([token == UNK or token not in run.vocabulary.ids for token in tokens], dtype=np.int64)


def _types(tokens: Iterable[str], unknown: Iterable[int]) -> int:
    return len({token for token, strange in zip(tokens, unknown, strict=True) if strange})


def require_same_words(a: Words, b: Words, names: tuple[str, str]) -> None:
    """Raises UserError where two runs read a text as other words, whose probabilities cannot be compared."""
    for number, (one, other) in enumerate(zip(a.words, b.words, strict=False), start=1):
        if one.text != other.text:
            raise UserError(
                f"{names[0]} and {names[1]} read other words: word {number:,} is {one.text!r} to the one and"
                f" {other.text!r} to the other; compare runs that separate words, fold case and normalise in the same"
                " way"
            )
        if one.ends != other.ends:
            raise UserError(
                f"{names[0]} and {names[1]} read other line ends: after word {number:,} ({one.text!r}) only one of them"
                " predicts <eos>; compare runs with the same data.eos"
            )
    if len(a.words) != len(b.words):
        raise UserError(
            f"{names[0]} reads {len(a.words):,} words and {names[1]} {len(b.words):,}; compare runs that read a text in"
            " the same way"
        )


def without_open_end(a: Words, b: Words) -> tuple[Words, Words]:
    """Both without their last word where only one of them predicts `<eos>` after it, as at the end of an open line."""
    if len(a.words) != len(b.words) or not a.words or a.words[-1].ends == b.words[-1].ends:
        return a, b
    before = range(len(a.words) - 1)
    return a.at(before), b.at(before)


class Shared(NamedTuple):
    """Log-probabilities (nats) of the words or sentences that are compared, [n] for each run; `kept` [N] marks them."""

    log_probs: list[Floats]
    kept: npt.NDArray[np.bool_]

    @property
    def left_out(self) -> int:
        return int((~self.kept).sum())


def shared(runs: Sequence[Words], treatment: Treatment, types: int | None = None) -> Shared:
    """The log-probabilities to compare; `types` is the number of unknown types (None: each run's own in the text)."""
    if treatment == "exclude":
        kept = np.sum([one.unknown for one in runs], axis=0) == 0
        return Shared([one.log_probs[kept] for one in runs], kept)
    found = [
        one.log_probs - (one.unknown * math.log(max(1, types or one.types)) if treatment == "spread" else 0.0)
        for one in runs
    ]
    return Shared(found, np.ones(len(found[0]), dtype=bool))


def read_sentences(run: TextModel, texts: Sequence[str], advance: Advance = None, *, ends: bool = True) -> Words:
    """Each text as one word, independent of the others, in ordinary spelling or as the training text was tokenised.

    Its end counts where the model predicts it, unless `ends` is false.
    """
    if not isinstance(run, TextRun):
        return _foreign_sentences(run, texts, ends=ends)
    tokens = [_alone(run, text, ends=ends) for text in texts]
    if run.vocabulary.unk is None:
        for text, read in zip(texts, tokens, strict=True):
            if lacking := [token for token in read if token not in run.vocabulary.ids]:
                raise refusal(lacking[0], run.vocabulary, run.options, repr(text), "leave the sentence out")
    model, inputs = _inputs(run, tokens)
    sums = list[float]()
    ids = [run.vocabulary.encode(one) for one in tokens]
    for log_probs in advancing(score_sentences(model, ids, run.first, inputs=inputs), len(texts), advance):
        sums.append(float(log_probs.sum(dtype=np.float64)))
    words = [Word("".join("".join(_plain(run, one)).split()), EOS in one, slice(0, len(one))) for one in tokens]
    every = [token for one in tokens for token in one]
    unknown = np.array([_unknown(run, one).sum() for one in tokens], dtype=np.int64)
    line_ends = np.array([one.count(EOS) for one in tokens], dtype=np.int64)
    return Words(words, np.array(sums), unknown, _types(every, _unknown(run, every)), line_ends)


def _plain(run: TextRun, tokens: Sequence[str]) -> list[str]:
    inner = [token for token in tokens if token != EOS]
    if run.options.spelt:
        return [run.tokeniser.decode(inner)]
    return fold(inner) if run.options.lowercase else inner


def _foreign_sentences(model: TextModel, texts: Sequence[str], *, ends: bool) -> Words:
    reader, sums, words, lacking = model.reader(), list[float](), list[Word](), list[list[str]]()
    sentences = (cut(reader, text, ends=ends) for text in texts)
    for sentence, log_probs in model.score_text(model.as_read(sentences)):
        sums.append(float(np.nansum(log_probs, dtype=np.float64)))
        inner = [token for token in sentence.pieces if token != EOS]
        words.append(Word("".join("".join(inner).split()), EOS in sentence.read, slice(0, len(sentence.read))))
        lacking.append(sentence.lacking)
    unknown: Counts = np.array([len(one) for one in lacking], dtype=np.int64)
    types = len({token for one in lacking for token in one})
    return Words(words, np.array(sums), unknown, types, np.array([int(one.ends) for one in words], dtype=np.int64))


def _alone(run: TextRun, text: str, *, ends: bool) -> list[str]:
    tokens = fit(clean(text, run.options), run.vocabulary, run.tokeniser)
    return [*tokens, EOS] if ends and tokens and run.vocabulary.eos is not None else tokens
