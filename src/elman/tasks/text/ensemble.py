"""Several models of one text, token by token: runs, and n-gram models over their vocabulary."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from elman.config.text import TextEvaluation
from elman.data.text.corpus import Split
from elman.errors import UserError
from elman.evaluation.perplexity import (
    ONE_STREAM,
    average_probabilities,
    reading,
    score_of,
    text_result,
    token_log_probs,
)
from elman.evaluation.result import Result
from elman.jobs import Advance
from elman.tasks.text.run import TextRun

if TYPE_CHECKING:
    from elman.evaluation.ngram.alignment import AlignedNGram
    from elman.evaluation.ngram.kneser_ney import Unigram
    from elman.evaluation.ngram.table import BackoffTable
    from elman.tasks.text.model import TextModel

StreamModel: TypeAlias = "Unigram | BackoffTable | AlignedNGram"  # a model of counts over the words of a vocabulary


def run_log_probs(
    run: TextRun, split: Split, rules: TextEvaluation = ONE_STREAM, advance: Advance = None
) -> np.ndarray:
    """The log-probability (nats) of every token of a split (`TextRun.split`) under a run, [n] float32; NaN: skipped."""
    return token_log_probs(*reading(run.model, split, run.first, rules), advance)


NetworkReader: TypeAlias = Callable[[TextRun, Split, TextEvaluation], np.ndarray]
"""How a network reads a split; the log-probability (nats) of every token, [n], NaN where it is skipped."""


def member_log_probs(
    runs: Sequence[TextRun],
    split: Split,
    counts: Sequence[StreamModel] = (),
    rules: TextEvaluation = ONE_STREAM,
    read: NetworkReader = run_log_probs,
) -> list[np.ndarray]:
    """The log-probability (nats) of every token of a split (`TextRun.split`) under each member, [n] each.

    Models of counts read the split as one stream, whatever the rules for networks; a token that the rules skip is NaN
    under them too.

    Raises UserError where the vocabularies differ.
    """
    require_one_vocabulary(runs)
    networks = [read(run, split, rules) for run in runs]
    others = [model.log_prob(split.tokens, [runs[0].first]) for model in counts]
    for one in others:
        one[: int(rules.skip_first)] = np.nan
    return [*networks, *others]


def ensemble_result(
    names: Sequence[str],
    log_probs: Sequence[np.ndarray],
    weights: Sequence[float],
    networks: Sequence[Mapping[str, Any]],
    split: Split,
) -> Result:
    """The result of the weighted mean of the members' probabilities; `members` holds the result of each alone.

    The first members are the networks, for each of which `networks` holds further fields of its result; where there
    are several of them, and models of counts too, the networks together are a member as well. `split` has the counted
    part of a split; NaN tokens are not counted.
    """

    def result(names: Sequence[str], log_probs: np.ndarray, **fields: Any) -> Result:
        return text_result(score_of(log_probs), split, run=" + ".join(names), **fields)

    size = len(networks)
    fields = [*networks, *[{}] * (len(names) - size)]
    members = [result([name], part, **more) for name, part, more in zip(names, log_probs, fields, strict=True)]
    if 1 < size < len(members):
        members.insert(size, result(names[:size], average_probabilities(log_probs[:size], weights[:size])))
    return result(
        names,
        average_probabilities(log_probs, weights),
        settings={"weights": [round(weight / sum(weights), 6) for weight in weights]},
        members=members,
    )


def own_counts(run: TextRun, order: int) -> "AlignedNGram":
    """A Kneser-Ney model of the training text of a run, read as one running stream as the network reads it.

    Raises UserError where two words of the vocabulary have one spelling in an n-gram file.
    """
    from elman.evaluation.ngram.alignment import AlignedNGram
    from elman.evaluation.ngram.model import train

    model = train(run.corpus().split("train").tokens, run.vocabulary, order, stream=True)
    return AlignedNGram(model, run.vocabulary, f"{order}-gram")


def require_one_vocabulary(runs: Sequence[TextRun]) -> None:
    """Raises UserError where the runs do not number the same words in the same way."""
    first = runs[0]
    for run in runs[1:]:
        if not have_one_vocabulary(first, run):
            raise UserError(
                f"{run.path} and {first.path} have different vocabularies ({len(run.vocabulary):,} and"
                f" {len(first.vocabulary):,} words); give runs with one vocabulary, to which a token is the same event"
            )


def have_one_vocabulary(one: "TextModel", *others: "TextModel") -> bool:
    return all(one.vocabulary.words == other.vocabulary.words for other in others)
