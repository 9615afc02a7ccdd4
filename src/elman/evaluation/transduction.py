"""What the output of a system that turns sources into targets is worth, by the measures of its task."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from elman.data.pair_options import PairOptions
from elman.evaluation.brackets import tree_measures
from elman.evaluation.overlap import BleuTokens, RougeWords, bleu, rouge
from elman.evaluation.resampling import SAMPLES, Difference, Figure, Measure, difference, interval

Kind = Literal["headlines", "translation", "trees"]


class Rules(NamedTuple):
    """Which measures, and how words are cut for them (`evaluation/overlap.py`).

    Attributes:
        kind: `headlines`: ROUGE-1, -2 and -L; `translation`: BLEU and chrF; `trees`: brackets.
        rouge_words: what a word is for ROUGE.
        bleu_tokens: sacrebleu's tokenisation.

    """

    kind: Kind
    rouge_words: RougeWords = "english"
    bleu_tokens: BleuTokens = "none"


def rules_of(options: PairOptions) -> Rules:
    """The measures of a corpus of pairs."""
    kind: Kind = "trees" if options.form == "trees" else options.measures
    return Rules(kind, options.rouge_words, options.bleu_tokens)


def require_libraries(rules: Rules) -> None:
    """Raises UserError where what measures need is not installed."""
    if rules.kind != "trees":
        measures(["a"], ["a"], rules)


def measures(
    hypotheses: Sequence[str], references: Sequence[str], rules: Rules, sources: Sequence[str] = ()
) -> list[Measure]:
    """Measure a system's output.

    Args:
        hypotheses: the output, a line for each source (`PairTokenisers.measured`); for trees their linear form.
        references: the right output in the same form.
        rules: which measures.
        sources: what was read; trees need it.

    Returns:
        the measures, the most important first.

    Raises:
        UserError: a library is missing, or a reference tree does not fit its sentence.

    """
    assert len(hypotheses) == len(references) > 0
    match rules.kind:
        case "headlines":
            return rouge(hypotheses, references, rules.rouge_words)
        case "translation":
            return bleu(hypotheses, references, rules.bleu_tokens)
        case "trees":
            return tree_measures(hypotheses, references, sources)


def figures(found: Sequence[Measure], samples: int = SAMPLES, seed: int = 0) -> list[Figure]:
    """The values with their intervals."""
    return [interval(measure, samples, seed) for measure in found]


def differences(a: Sequence[Measure], b: Sequence[Measure], samples: int = SAMPLES, seed: int = 0) -> list[Difference]:
    """Two systems on the same sources, measure by measure."""
    return [difference(one, other, samples, seed) for one, other in zip(a, b, strict=True)]
