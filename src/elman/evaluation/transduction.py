"""What the output of a system that turns sources into targets is worth, by the measures of its task."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from elman.config.pairs import PairOptions
from elman.data.pairs.corpus import PairCorpus, Pairs
from elman.data.pairs.symbols import PairSymbols
from elman.data.pairs.trees import XX, Leaf, Node, linear, to_tree
from elman.evaluation.brackets import PUNCTUATION, brackets, tree_measures
from elman.evaluation.overlap import BleuTokens, RougeWords, bleu, rouge
from elman.evaluation.statistics import SAMPLES, Difference, Figure, Measure, difference, interval


# FOLDED evaluation/transduction_baselines.py: What a system must beat: output that nobody had to learn much for.
def baseline(corpus: PairCorpus, pairs: Pairs) -> tuple[str, list[str]]:
    """The name and the output of the baseline that the corpus's measures are held against.

    Headlines: the first words of the source, as many as training targets have on average. Translation: the source
    itself. Trees: branching to the right alone, with the label that such constituents have most often in training.
    """
    if corpus.options.form == "trees":
        return "right-branching", right_branching(corpus, pairs)
    tokenisers = corpus.symbols.tokenisers
    sources = [tokenisers.source_words(text) for text in pairs.source_text]
    if corpus.options.measures == "translation":
        return "copied source", [tokenisers.measured_source(words) for words in sources]
    count, spelt = mean_length(corpus.split("train")), tokenisers.source.options.spelt
    unit = corpus.options.tokenisation if spelt else "words"
    return f"first {count} {unit}", [tokenisers.measured_source(words[:count]) for words in sources]


def mean_length(pairs: Pairs) -> int:
    """Symbols of a target on average, rounded, one at least."""
    return max(1, round(float(pairs.target.lengths.mean())))


def references(pairs: Pairs, symbols: PairSymbols) -> list[str]:
    """The right output in the form that measures take (`PairTokenisers.measured`)."""
    return [symbols.tokenisers.measured(symbols.target_words(text)) for text in pairs.target_text]


def right_branching(corpus: PairCorpus, pairs: Pairs) -> list[str]:
    """Linear trees in which every word has all that follow it for a sister; final punctuation hangs at the top."""
    train = corpus.split("train")
    outer, inner = _labels(train.target_text, train.source_text)
    return [" ".join(linear(_branch(text.split(), outer, inner))) for text in pairs.source_text]


def _branch(words: list[str], outer: str, inner: str) -> Node:
    marks = 1 if len(words) > 1 and words[-1] in PUNCTUATION else 0
    leaves = [Leaf(XX, word) for word in words]
    first, end = leaves[: len(leaves) - marks], leaves[len(leaves) - marks :]
    rest: tuple[Node | Leaf, ...] = (first[-1],)
    for leaf in reversed(first[:-1]):
        rest = (leaf, rest[0] if len(rest) == 1 else Node(inner, rest))
    return Node(outer, (*rest, *end))


def _labels(trees: Sequence[str], sentences: Sequence[str]) -> tuple[str, str]:
    """The most frequent label of whole sentences, and of other constituents that end with their sentence."""
    outer: Counter[str] = Counter()
    inner: Counter[str] = Counter()
    for text, sentence in zip(trees, sentences, strict=True):
        found = brackets(to_tree(text.split(), sentence.split()).tree)
        end = max((stop for _, _, stop in found), default=0)
        for (label, start, stop), count in found.items():
            if stop == end:
                (inner if start else outer)[label] += count
    return outer.most_common(1)[0][0], (inner or outer).most_common(1)[0][0]


# TARGET
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
