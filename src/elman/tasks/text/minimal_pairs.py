"""Minimal pairs as a run reads and judges them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from elman.data.minimal_pairs import Pair
from elman.data.text.sentences import Lexicon
from elman.data.text.tokeniser import ends_word
from elman.evaluation.minimal_pairs import BOUNDARY, CodedPair, Ids, code, pair_log_probs, sentence_log_probs
from elman.evaluation.statistics import Floats
from elman.jobs import Advance
from elman.tasks.text.model import TextModel, pair_scores
from elman.tasks.text.run import TextRun


class Judged(NamedTuple):
    """Pairs as a run reads them, and the log-probabilities (nats) of good and bad, [n, 2]; NaN: not distinguished."""

    coded: list[CodedPair]
    log_probs: Floats


def judge(run: TextModel, pairs: Sequence[Pair], *, known_only: bool = False, advance: Advance = None) -> Judged:
    """Score pairs; with `known_only` unknown words are `<unk>` also to a model that reads spelling."""
    if not isinstance(run, TextRun):
        return Judged(*pair_scores(run, pairs, advance))
    lexicon = Lexicon(run.vocabulary) if run.reads_spelling and not known_only else None
    coded = code(pairs, run.vocabulary, run.tokeniser, lexicon)
    model = run.model if lexicon is None else run.model.knowing(lexicon.words)
    ends = [number for number, token in enumerate(run.vocabulary.words) if ends_word(token, run.options)]

    def score(ids: Sequence[Ids], read: Sequence[Ids]) -> Floats:
        return sentence_log_probs(model, ids, run.first, advance, read, ends)

    log_probs = pair_log_probs(coded, score)
    return Judged(coded, log_probs)


def item_rows(name: str, pairs: Sequence[Pair], judged: Judged) -> Iterator[dict[str, str | float | int]]:
    """A row for each pair: item, sentences, log-probabilities, whether it is judged correctly, and its other columns.

    Log-probabilities and judgement are empty where the pair is not distinguished.
    """
    others = list(dict.fromkeys(key for pair in pairs for key, _ in pair.others))
    for pair, coded, (good, bad) in zip(pairs, judged.coded, judged.log_probs.tolist(), strict=True):
        row: dict[str, str | float | int] = {
            "run": name,
            "item": pair.item,
            "phenomenon": pair.phenomenon,
            "field": pair.field,
            "good": pair.good,
            "bad": pair.bad,
            "log_prob_good": "" if coded.same else round(good, 6),
            "log_prob_bad": "" if coded.same else round(bad, 6),
            "difference": "" if coded.same else round(good - bad, 6),
            "correct": "" if coded.same else int(good > bad),
            "tokens_good": int((coded.good != BOUNDARY).sum()),
            "tokens_bad": int((coded.bad != BOUNDARY).sum()),
            "unknown": " ".join(coded.unknown),
        }
        given = dict(pair.others)
        yield row | {key if key not in row else f"{key}_given": given.get(key, "") for key in others}
