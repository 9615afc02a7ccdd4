"""Word by word: surprisal, entropy and its reduction, rank, length; and perplexity by the frequency of words."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from elman.data.text.reading import Sentence
from elman.data.text.vocabulary import UNK, Vocabulary
from elman.drawing.heat_map import HOTTEST, Word, heat_map, mean_bits
from elman.drawing.page import Section, Table, write_page
from elman.evaluation.perplexity import score_of
from elman.evaluation.scoring import Prediction, Unknown, surprisal
from elman.evaluation.word_ends import with_word_ends
from elman.objective import perplexity
from elman.tasks.text.model import TextModel

SCALE = Markup('<div class="scale" aria-hidden="true">0 bits <i></i> {} or more</div>\n').format(int(HOTTEST))

EDGES = (1, 5, 25, 100, 1000)
"""Frequencies at which bins begin, after 0."""


class WordRow(msgspec.Struct, frozen=True, kw_only=True):
    """A word in its sentence: what white space separates in the text, or `<eos>` where tokens are words.

    Bits are logarithms to base two, None where a figure does not apply.

    Attributes:
        sentence, position: numbers from 1, the position within the sentence.
        surprisal: -log2 p(word | what came before), the sum over its tokens (Hale 2001, A probabilistic Earley parser
            as a psycholinguistic model, NAACL; Levy 2008, Expectation-based syntactic comprehension, Cognition 106);
            of subwords with the end of the word (`elman.evaluation.word_ends`).
        entropy: of the distribution of the next token before the word (bits).
        entropy_reduction: max(0, entropy before the word - entropy after it), in bits: one step ahead of Hale 2006,
            Uncertainty about the rest of the sentence, Cognitive Science 30, whose entropy is over whole sentences.
        rank: of the word's first token among all, 1 the most probable; None where nothing of the word is read.
        frequency: how often the training text has the word without its marks, of several tokens the first with a
            letter or digit, 0 if it is unknown; None for models of smaller parts.
        unknown: 1 if the word, or a part of it, is not in the vocabulary.
    """

    sentence: int
    position: int
    word: str
    surprisal: float | None
    entropy: float | None
    entropy_reduction: float | None
    rank: int | None
    frequency: int | None
    length: int
    unknown: int


def word_rows(
    run: TextModel,
    number: int,
    sentence: Sentence,
    prediction: Prediction,
    treatment: Unknown,
    *,
    word_ends: bool = True,
) -> Iterator[WordRow]:
    """A row for every word of a sentence, predicted by `predict_text` or by a model that adapts.

    Unknown words that the treatment excludes, and words of which nothing is read, have no surprisal. Without
    `word_ends` the white space in front of a word counts for it, as its pieces have it.
    """
    vocabulary, log_probs = run.vocabulary, prediction.log_prob
    if word_ends:
        log_probs = with_word_ends(log_probs, prediction.space, sentence, run.tokeniser)
    bits = surprisal(treatment.apply(log_probs, sentence.unknown_tokens))
    entropy = surprisal(-prediction.entropy)
    for position, word in enumerate(sentence.words(run.tokeniser), start=1):
        begin, end = word.read.start, word.read.stop
        read, total = sentence.read[begin:end], float(bits[begin:end].sum())
        lacks = not read or math.isnan(total) or (word.unknown and treatment.treatment == "exclude")
        counted = next((token for token in read if any(map(str.isalnum, token))), read[0] if read else "")
        yield WordRow(
            sentence=number,
            position=position,
            word=word.text,
            surprisal=None if lacks else round(total, 6),
            entropy=_rounded(entropy[begin]),
            entropy_reduction=_rounded(np.maximum(0.0, entropy[begin] - entropy[end])),
            rank=int(prediction.rank[begin]) or None if read else None,
            frequency=_count(vocabulary, counted) if run.counts else None,
            length=len(word.text),
            unknown=int(word.unknown),
        )


def _rounded(bits: float) -> float | None:
    return None if math.isnan(bits) else round(float(bits), 6)


def _count(vocabulary: Vocabulary, word: str) -> int:
    number = vocabulary.ids.get(word)
    return 0 if number is None else vocabulary.counts[number]


def write_reading_page(out: Path, rows: Sequence[WordRow], model: str, text: str) -> Path:
    """Write the page of a text, given the titles of the model and the text; raises UserError where it cannot."""
    words = [Word(row.word, row.surprisal) for row in rows]
    mean, scored = mean_bits(words), sum(word.surprisal is not None for word in words)
    unknown = sum(row.unknown for row in rows)
    verdict = f"{scored:,} words scored, {unknown:,} of {len(rows):,} unknown"
    verdict += "." if math.isnan(mean) else f"; {mean:.2f} bits per word on average."
    sentences = itertools.groupby(rows, key=lambda row: row.sentence)
    paragraphs = (heat_map([Word(row.word, row.surprisal) for row in group]) for _, group in sentences)
    body = SCALE + Markup("\n").join(Markup('<p class="heat">{}</p>').format(paragraph) for paragraph in paragraphs)
    sections = [
        Section("Surprisal", ["The warmer the ground of a word, the larger its surprisal."], body=body),
        Section("The most surprising words", tables=[_hardest(rows)]),
    ]
    return write_page(out, kind="text, word by word", title=text, verdict=verdict, sections=sections, text=[model])


def _hardest(rows: Sequence[WordRow]) -> Table:
    scored = sorted((row for row in rows if row.surprisal is not None), key=lambda row: -(row.surprisal or 0.0))
    cells = [
        [
            row.word,
            *map(str, (row.sentence, row.position)),
            *(f"{bits:.2f}" for bits in (row.surprisal, row.entropy, row.entropy_reduction)),
            "" if row.rank is None else f"{row.rank:,}",
            "" if row.frequency is None else f"{row.frequency:,}",
            "yes" if row.unknown else "",
        ]
        for row in scored[:20]
    ]
    header = ["word", "sentence", "position", "surprisal", "entropy", "reduction", "rank", "in training", "unknown"]
    return Table("", header, cells, "Surprisal, entropy before the word and its reduction are in bits.")


@dataclasses.dataclass(frozen=True)
class Bin:
    """Words seen about equally often in training (`name`, such as 5-24), or `<unk>`.

    How many tokens of the split are such words, and their mean negative log-likelihood (nats; None where there are
    none); the same of the tokens that follow one.
    """

    name: str
    tokens: int
    nll: float | None
    following: int
    following_nll: float | None

    @property
    def perplexity(self) -> float | None:
        """Perplexity of the words; None without words."""
        return None if self.nll is None else perplexity(self.nll)

    @property
    def following_perplexity(self) -> float | None:
        """Perplexity of the tokens that follow them; None without any."""
        return None if self.following_nll is None else perplexity(self.following_nll)


def by_frequency(
    log_probs: np.ndarray,
    tokens: np.ndarray,
    train: np.ndarray,
    num_words: int,
    unk: int | None,
    edges: Sequence[int] = EDGES,
) -> list[Bin]:
    """A split [N] by the frequency of its words in the training split, rarest first; the last bin is `<unk>`.

    `log_probs` [N] (nats): of its tokens; NaN is not counted; `unk` is the id of `<unk>`, if there is
    one. Bins begin at 0 and at the edges, which rise.
    """
    seen = np.bincount(train, minlength=num_words)[tokens]
    known = np.full(len(tokens), fill_value=True) if unk is None else tokens != unk
    bins = []
    for low, high in zip((0, *edges), (*edges, None), strict=True):
        inside = known & (seen >= low)
        inside = inside if high is None else inside & (seen < high)
        bins.append(_bin(_name(low, high), log_probs, inside))
    return bins if unk is None else [*bins, _bin(UNK, log_probs, ~known)]


def _name(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more"
    return str(low) if high == low + 1 else f"{low}-{high - 1}"


def _bin(name: str, log_probs: np.ndarray, inside: npt.NDArray[np.bool_]) -> Bin:
    own, following = log_probs[inside], log_probs[1:][inside[:-1]]
    here, after = score_of(own), score_of(following)
    return Bin(name, here.count, here.nll if here.count else None, after.count, after.nll if after.count else None)
