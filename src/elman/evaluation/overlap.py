"""Measures of words shared with a reference, as the libraries rouge-score and sacrebleu compute them."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from elman.errors import UserError
from elman.evaluation.statistics import Floats, Measure

RougeWords = Literal["english", "spaces"]
BleuTokens = Literal["none", "13a", "char", "zh", "intl"]


class Spaces:
    """Words are what stands between spaces: for tokenised text of any language."""

    def tokenize(self, text: str) -> list[str]:
        """The words."""
        return text.split()


def rouge(hypotheses: Sequence[str], references: Sequence[str], words: RougeWords = "english") -> list[Measure]:
    """ROUGE-1, ROUGE-2 and ROUGE-L: F1 in percent, the mean over sentences (Lin 2004).

    Args:
        hypotheses: a line each.
        references: a line each.
        words: `english`: small letters, everything but a-z and 0-9 separates, no stemming, as in rouge-score; such
            words do not exist in Japanese, for which the lines must be tokenised and `spaces` chosen.

    Raises:
        UserError: rouge-score is not installed.

    """
    try:
        from rouge_score import rouge_scorer
    except ImportError:
        raise UserError("ROUGE needs the package rouge-score: pip install 'elman[pairs]'") from None
    kinds = ["rouge1", "rouge2", "rougeL"]
    scorer = rouge_scorer.RougeScorer(kinds, tokenizer=Spaces() if words == "spaces" else None)
    scores = [scorer.score(*pair) for pair in zip(references, hypotheses, strict=True)]
    signature = f"rouge-score, words: {words}, no stemming, mean F1"
    return [
        Measure(
            f"ROUGE-{kind.removeprefix('rouge')}",
            np.array([[100 * score[kind].fmeasure, 1.0] for score in scores]),
            _mean,
            signature,
        )
        for kind in kinds
    ]


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokens: BleuTokens = "none") -> list[Measure]:
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015) with the signatures of sacrebleu (Post 2018).

    Args:
        hypotheses: a line each.
        references: a line each.
        tokens: sacrebleu's tokenisation; `none` for lines that are tokenised already.

    Raises:
        UserError: sacrebleu is not installed.

    """
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError:
        raise UserError("BLEU needs the package sacrebleu: pip install 'elman[pairs]'") from None
    measures = []
    for name, metric in (("BLEU", BLEU(tokenize=tokens, force=True)), ("chrF", CHRF())):
        statistics = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
        figure = _scorer(metric)
        metric.num_refs = 1
        signature = metric.get_signature().format()
        measures.append(Measure(name, np.array(statistics, dtype=np.float64), figure, signature))
    return measures


def _scorer(metric: Any) -> Any:
    """The score of summed statistics, the same function that sacrebleu's own significance tests call."""

    def figure(sums: Floats) -> float:
        return float(metric._compute_score_from_stats(sums.tolist()).score)

    return figure


def _mean(sums: Floats) -> float:
    return float(sums[0] / sums[1])
