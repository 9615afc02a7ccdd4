"""Several models of one text, token by token."""

from collections.abc import Sequence

import numpy as np

from elman.config.text import TextEvaluation
from elman.data.text.corpus import Split
from elman.errors import UserError
from elman.evaluation.ngram import KneserNey
from elman.evaluation.perplexity import average_probabilities, reading, token_log_probs
from elman.jobs import Advance
from elman.tasks.text.run import TextRun


def ensemble_log_probs(
    runs: Sequence[TextRun],
    split: Split,
    ngram: int | None = None,
    weights: list[float] | None = None,
    streams: int = 1,
    skip_first: bool = False,
) -> np.ndarray:
    """Log of the averaged probability of every token of a split (`TextRun.split`), [n] float64.

    A Kneser-Ney model of order `ngram` of the first run's training text joins the models where it is set. There is one
    weight for each member, the n-gram last; None: equal weights.

    Raises UserError where the vocabularies differ.
    """
    require_one_vocabulary(runs)
    members = [run_log_probs(run, split, streams, skip_first) for run in runs]
    if ngram is not None:
        if ngram < 1:
            raise UserError(f"--ngram is {ngram}; it must be 1 or more")
        train = runs[0].corpus().split("train").tokens
        members.append(KneserNey.train(train, len(runs[0].vocabulary), ngram).log_prob(split.tokens, [runs[0].first]))
    return average_probabilities(members, weights)


def run_log_probs(
    run: TextRun, split: Split, streams: int = 1, skip_first: bool = False, advance: Advance = None
) -> np.ndarray:
    """The log-probability (nats) of every token of a split under a run, [n] float32."""
    rules = TextEvaluation(streams=streams, skip_first=skip_first)
    return token_log_probs(*reading(run.model, split, run.first, rules), advance)


def require_one_vocabulary(runs: Sequence[TextRun]) -> None:
    """Raises UserError where the runs do not number the same words in the same way."""
    first = runs[0]
    for run in runs[1:]:
        if not have_one_vocabulary(first, run):
            raise UserError(
                f"{run.path} and {first.path} have different vocabularies ({len(run.vocabulary):,} and"
                f" {len(first.vocabulary):,} words); give runs with one vocabulary, to which a token is the same event"
            )


def have_one_vocabulary(one: TextRun, other: TextRun) -> bool:
    """Whether two runs number the same words in the same way."""
    return one.vocabulary.words == other.vocabulary.words
