"""Measures of what a system writes, and the baseline it must exceed.

Headlines are measured by ROUGE-1, -2 and -L, translations by BLEU and chrF (as the libraries rouge-score and sacrebleu
compute them), trees by their brackets, other sequences by the edit distance; all of them by how many outputs are right
as a whole.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Literal, NamedTuple

import numpy as np

from elman.errors import counted, notice, optional
from elman.evaluation.branching import branching
from elman.evaluation.measures import Unit, error_rate, exact_match, items, tree_measures
from elman.evaluation.statistics import Measure
from elman.kinds.pairs.corpus import PairCorpus, Pairs
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.symbols import PairSymbols

Kind = Literal["headlines", "translation", "sequences", "trees"]
RougeWords = Literal["english", "spaces"]
BleuTokens = Literal["none", "13a", "char", "zh", "intl"]


class Rules(NamedTuple):
    """Which measures, how words are cut for ROUGE and by sacrebleu, and the symbols of the edit distance."""

    kind: Kind
    rouge_words: RougeWords = "english"
    bleu_tokens: BleuTokens = "none"
    unit: Unit = "words"


def rules_of(options: PairOptions) -> Rules:
    kind: Kind = "trees" if options.form == "trees" else options.measures
    unit: Unit = "characters" if options.tokenisation == "characters" else "words"
    return Rules(kind, options.rouge_words, options.bleu_tokens, unit)


def require_libraries(rules: Rules) -> None:
    """Raises UserError where a library that the measures need is not installed."""
    if rules.kind in ("headlines", "translation"):
        measures(["a"], ["a"], rules)


def measures(
    hypotheses: Sequence[str], references: Sequence[str], rules: Rules, sources: Sequence[str] = ()
) -> list[Measure]:
    """The measures of a system's output, the most important first.

    Hypotheses and references are a line for each pair (`PairTokenisers.measured`), trees in linear form. Trees need the
    sources; sequences of one source are alternatives of which any is right (`elman.evaluation.measures.items`). Raises
    UserError where a library is missing, or a reference tree does not fit its sentence.
    """
    assert len(hypotheses) == len(references) > 0
    match rules.kind:
        case "headlines":
            return [*rouge(hypotheses, references, rules.rouge_words), exact_match(items(hypotheses, references))]
        case "translation":
            return [*bleu(hypotheses, references, rules.bleu_tokens), exact_match(items(hypotheses, references))]
        case "sequences":
            found = items(hypotheses, references, sources)
            return [exact_match(found), error_rate(found, rules.unit)]
        case "trees":
            return tree_measures(hypotheses, references, sources)


_ENGLISH = re.compile("[a-z0-9]", re.IGNORECASE)

_UNDIVIDED = re.compile("[\u3040-\u30ff\u4e00-\u9fff]{8}")  # kana and Chinese characters in a row, more than a word has


def rouge(hypotheses: Sequence[str], references: Sequence[str], words: RougeWords = "english") -> list[Measure]:
    """ROUGE-1, ROUGE-2 and ROUGE-L: F1 in percent, the mean over sentences (Lin 2004).

    With `english` words are runs of a-z and 0-9 in lower case, not stemmed, as in rouge-score. Japanese has no such
    words: its lines must be tokenised and `spaces` chosen; a notice counts references without any. Raises UserError
    where rouge-score is not installed.
    """
    needs = "ROUGE needs the package rouge-score: pip install 'elman[pairs]'"
    rouge_scorer = optional("rouge_score.rouge_scorer", needs)
    if words == "english" and (wordless := sum(not _ENGLISH.search(line) for line in references)):
        notice(
            f"{wordless:,} of {counted(len(references), 'reference')} without a word of a-z and 0-9, for which ROUGE is"
            " 0: where words are written otherwise, put spaces between them and set rouge_words to spaces"
        )
    kinds = ["rouge1", "rouge2", "rougeL"]
    at_spaces = SimpleNamespace(tokenize=str.split)  # for tokenised text of any language
    scorer = rouge_scorer.RougeScorer(kinds, tokenizer=at_spaces if words == "spaces" else None)
    scores = [scorer.score(*pair) for pair in zip(references, hypotheses, strict=True)]
    return [
        Measure(
            f"ROUGE-{kind.removeprefix('rouge')}",
            np.array([[100 * score[kind].fmeasure, 1.0] for score in scores]),
            lambda sums: float(sums[0] / sums[1]),
            f"rouge-score, words: {words}, no stemming, mean F1",
        )
        for kind in kinds
    ]


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokens: BleuTokens = "none") -> list[Measure]:
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015) with the signatures of sacrebleu (Post 2018).

    `tokens` is sacrebleu's tokenisation; `none` for lines that are tokenised already. A notice reports Japanese or
    Chinese that is not. Raises UserError where sacrebleu is not installed.
    """
    sacrebleu = optional("sacrebleu.metrics", "BLEU needs the package sacrebleu: pip install 'elman[pairs]'")
    undivided = sum(_UNDIVIDED.search(line) is not None for line in references)
    if tokens not in ("char", "zh") and 2 * undivided > len(references):
        notice(
            f"{undivided:,} of {counted(len(references), 'reference')} without spaces between words, which BLEU counts"
            " as one word each: set bleu_tokens to char"
        )
    found = []
    for name, metric in (("BLEU", sacrebleu.BLEU(tokenize=tokens, force=True)), ("chrF", sacrebleu.CHRF())):
        statistics = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
        metric.num_refs = 1
        signature = metric.get_signature().format()
        of_sums = partial(lambda own, sums: float(own._compute_score_from_stats(sums.tolist()).score), metric)
        found.append(Measure(name, np.array(statistics, dtype=np.float64), of_sums, signature))
    return found


def references(pairs: Pairs, symbols: PairSymbols) -> list[str]:
    """The right output in the form that measures take (`PairTokenisers.measured`)."""
    return [symbols.tokenisers.measured(symbols.tokenisers.target_words(text)) for text in pairs.target_text]


def baseline(corpus: PairCorpus, pairs: Pairs) -> tuple[str, list[str]]:
    """The name and the output of the baseline of a corpus.

    Headlines: the first words of the source, as many as training targets have on average. Translation: the source
    itself. Sequences: the most frequent target of training; ties go to the first. Trees: right-branching, with the
    label that such constituents have most often in training.
    """
    if corpus.options.form == "trees":
        train = corpus.split("train")
        return "right-branching", branching(train.target_text, train.source_text, pairs.source_text)
    tokenisers = corpus.symbols.tokenisers
    if corpus.options.measures == "sequences":
        ((commonest, _),) = Counter(corpus.split("train").target_text).most_common(1)
        return "most frequent target", [tokenisers.measured(tokenisers.target_words(commonest))] * len(pairs)
    sources = [tokenisers.source_words(text) for text in pairs.source_text]
    if corpus.options.measures == "translation":
        return "copied source", [tokenisers.measured_source(words) for words in sources]
    count = max(1, round(float(corpus.split("train").target.lengths.mean())))
    unit = corpus.options.tokenisation if tokenisers.source.options.spelt else "words"
    return f"first {count} {unit}", [tokenisers.measured_source(words[:count]) for words in sources]
