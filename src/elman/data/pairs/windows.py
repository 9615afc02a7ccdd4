"""Batches of pairs as a trainer reads them."""

from elman.data.pairs.batches import PairBatch
from elman.data.pairs.corpus import PairCorpus, Pairs
from elman.data.windows import Batch, Source, Span


class PairWindows:
    """Pairs of similar length side by side, every pair once an epoch; each batch begins and ends its targets.

    The batches of an epoch depend on the seed and the epoch's number alone, so a resumed run needs nothing but its
    position.

    Args:
        corpus: of the pairs.
        pairs: the split.
        batch_size: pairs a batch.
        tokens: instead of a number of pairs, symbols a batch at most, padding and both sides together.
        seed: of the order.

    """

    def __init__(self, corpus: PairCorpus, pairs: Pairs, batch_size: int, tokens: int | None, seed: int) -> None:
        self.corpus, self.pairs, self.seed = corpus, pairs, seed
        self.batch_size, self.tokens = (None if tokens else batch_size), tokens
        self._laid: tuple[int, list[list[int]]] | None = None

    def spans(self, epoch: int) -> list[Span]:
        """One for every batch, as long as its longest target with its end."""
        lengths = self.pairs.target.lengths + 1
        return [Span(place, int(lengths[indices].max()), epoch) for place, indices in enumerate(self._batches(epoch))]

    def batch(self, span: Span) -> Batch:
        """The batch of a span."""
        return as_batch(self.corpus.gather(self.pairs, self._batches(span.epoch)[span.start]))

    def _batches(self, epoch: int) -> list[list[int]]:
        if self._laid is None or self._laid[0] != epoch:
            found = self.corpus.buckets(
                self.pairs, batch_size=self.batch_size, tokens_per_batch=self.tokens, seed=self.seed, epoch=epoch
            )
            self._laid = (epoch, found)
        return self._laid[1]


def as_batch(pairs: PairBatch) -> Batch:
    """Pairs as a window whose columns are conditioned on their sources."""
    return Batch(pairs.inputs, pairs.targets, pairs.mask, None, Source(pairs.source, pairs.source_mask))
