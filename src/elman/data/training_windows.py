"""A stream of tokens in columns, read to train in windows of equal or of random length."""

import numpy as np
import torch

from elman.data.windows import Batch, Span
from elman.errors import UserError


class TrainingWindows:
    """A stream cut into B columns that are read side by side; the remainder is dropped.

    Only the lengths of the windows vary: base `length` with probability 1 - `short_probability`, else half of it, then
    max(5, int(N(base, spread))) and never more than `length + max_extra` (Merity et al. 2018, section 4.1). The spans
    of an epoch depend on the seed and the epoch's number alone, so a resumed run needs nothing but its position.

    Args:
        tokens: the stream, an integer array [n].
        batch_size: B.
        length: the base length (bptt).
        random: vary the lengths.
        short_probability, spread, max_extra: see above.
        seed: of the lengths.

    Raises:
        UserError: the corpus is shorter than one window of two steps a column.

    """

    def __init__(
        self,
        tokens: np.ndarray,
        batch_size: int,
        length: int,
        *,
        random: bool = False,
        short_probability: float = 0.05,
        spread: float = 5.0,
        max_extra: int | None = None,
        seed: int = 0,
    ) -> None:
        steps = len(tokens) // batch_size
        if steps < length + 1:
            raise UserError(
                f"the training text has {len(tokens):,} tokens, too few for {batch_size} columns of one window of"
                f" {length} steps ({batch_size * (length + 1):,} tokens); use more text, or lower"
                " training.batch_size or training.window.length"
            )
        self.columns = tokens[: steps * batch_size].reshape(batch_size, steps)
        self.batch_size, self.steps, self.length, self.random = batch_size, steps, length, random
        self.short_probability, self.spread, self.max_extra, self.seed = (
            short_probability,
            spread,
            max_extra,
            seed,
        )

    def spans(self, epoch: int) -> list[Span]:
        """The windows of an epoch, in order; together they cover every step but the last once."""
        last = self.steps - 1
        if not self.random:
            return [Span(at, min(self.length, last - at)) for at in range(0, last, self.length)]
        draw = np.random.default_rng([self.seed, epoch])
        spans, at = [], 0
        while at < last:
            base = self.length if draw.random() >= self.short_probability else self.length / 2
            length = max(5, int(draw.normal(base, self.spread)))
            if self.max_extra is not None:
                length = min(length, self.length + self.max_extra)
            spans.append(Span(at, min(length, last - at)))
            at += length
        return spans

    def batch(self, span: Span) -> Batch:
        """The window of a span; the columns are fresh at the beginning of the stream."""
        at, length, _ = span
        block = torch.from_numpy(self.columns[:, at : at + length + 1].astype(np.int64)).t().contiguous()
        fresh = torch.full((self.batch_size,), at == 0)
        return Batch(block[:-1], block[1:], None, fresh)
