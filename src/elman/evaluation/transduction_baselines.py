"""What a system must beat: output that nobody had to learn much for."""

from collections import Counter
from collections.abc import Sequence

from elman.data.linear_trees import to_tree
from elman.data.pair_symbols import PairSymbols
from elman.data.pairs import PairCorpus, Pairs
from elman.data.trees import XX, Leaf, Node, linear
from elman.evaluation.brackets import PUNCTUATION, brackets


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
