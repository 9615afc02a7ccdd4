"""Scores of texts as new columns of a table, batch by batch, for libraries that spread tables over processes.

One class serves `datasets.Dataset.map(batched=True)`, Ray Data's `map_batches` and Spark's `mapInPandas`: it is made
where the work is described, sent to the workers as its arguments alone, and opens the run there when it is first used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.text.reading import Sentence
    from elman.evaluation.scoring import Treatment
    from elman.tasks.text.run import TextRun

BatchT = TypeVar("BatchT")

COLUMNS = ("log_prob", "tokens", "unknown")
PER_TOKEN = ("token_texts", "token_log_probs")  # the columns that are always added, and the further ones of `per_token`


class Scorer:
    """Adds to a batch of texts the columns of their scores.

    A batch is a dictionary of columns (lists or arrays), a pandas DataFrame, or a list of texts, which becomes a
    dictionary; the same is returned with these columns:

    - `log_prob`: the sum of the log-probabilities of the tokens (nats), float;
    - `tokens`: how many are scored, `<eos>` at the end among them where the run has it, int;
    - `unknown`: how many of them the vocabulary lacks, int;
    - with `per_token` also `token_texts` and `token_log_probs`: lists, one item for each token.

    Each text is one sentence, independent of all others, whatever line breaks it holds; an empty one is `<eos>` alone
    where the run has it. Texts of similar length are computed side by side; figures equal the output of `elman score`
    up to the rounding of single precision (relative differences of about 1e-6).

    Args:
        run: a run folder, the name of a trained model, or `hf://USER/NAME`.
        column: the column of texts.
        per_token: also add lists of the tokens and their log-probabilities.
        unknown: `score` unknown words as `<unk>`, or `exclude` them from the sums (and leave them out where the
            vocabulary has no `<unk>`).
        prefix: what the names of the new columns begin with.
        batch_size: texts that are computed side by side.
        device, threads: where the computation runs; a worker of many should have one thread.

    Raises UserError where a number is below 1, and, when it is called, where the folder is not a run on text, or the
    column is missing, has something that is no text, or already has a neighbour of the name of a new column.

    Example (see docs/python.md)::

        scored = dataset.map(elman.Scorer("runs/demo"), batched=True)
    """

    def __init__(
        self,
        run: Path | str,
        *,
        column: str = "text",
        per_token: bool = False,
        unknown: "Treatment" = "score",
        prefix: str = "",
        batch_size: int = 32,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        if unknown not in ("score", "exclude"):
            raise UserError(f"unknown is {unknown!r}; give score or exclude")
        for name, number in {"batch_size": batch_size, "threads": threads}.items():
            if number is not None and number < 1:
                raise UserError(f"{name} is {number}; it must be 1 or more")
        self.run, self.column, self.per_token, self.unknown = str(run), column, per_token, unknown
        self.prefix, self.batch_size, self.device, self.threads = prefix, batch_size, device, threads
        self._opened: TextRun | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The arguments; the run stays where it is."""
        return {**self.__dict__, "_opened": None}

    def __call__(self, batch: BatchT) -> Any:
        """The batch with the new columns; a copy, the argument is not changed."""
        if isinstance(batch, Mapping):
            added = self._columns(batch, list(batch.keys()), isinstance(next(iter(batch.values()), None), np.ndarray))
            return {**batch, **added}
        if hasattr(batch, "columns") and hasattr(batch, "assign"):
            return batch.assign(**self._columns(batch, list(batch.columns), arrays=False))
        if isinstance(batch, Sequence) and not isinstance(batch, str):
            return self({self.column: list(batch)})
        raise UserError(
            f"a batch of texts is a dictionary of columns, a pandas DataFrame or a list, not {type(batch).__name__}"
        )

    def batches(self, batches: Iterable[BatchT]) -> Iterator[Any]:
        """Each of many batches with the new columns: the function that Spark's `mapInPandas` takes."""
        return map(self, batches)

    def _columns(self, batch: Any, names: list[Any], arrays: bool) -> dict[str, Any]:
        if self.column not in names:
            raise UserError(f"the batch has no column {self.column!r}; it has {', '.join(map(str, names))}")
        wanted = [self.prefix + name for name in (*COLUMNS, *(PER_TOKEN if self.per_token else ()))]
        if taken := [name for name in wanted if name in names]:
            raise UserError(f"the batch already has a column {taken[0]!r}; give another prefix")
        found = self._score([_text(value, row, self.column) for row, value in enumerate(batch[self.column])])
        columns: list[Any] = [list(column) for column in zip(*found, strict=True)] if found else [[] for _ in wanted]
        if arrays:
            columns[:3] = [np.array(column, kind) for column, kind in zip(columns, (float, int, int), strict=False)]
            columns[3:] = [_ragged(column) for column in columns[3:]]
        return dict(zip(wanted, columns, strict=True))

    def _score(self, texts: list[str]) -> list[tuple[Any, ...]]:
        from elman.evaluation.scoring import Unknown

        run, treatment = self._run(), Unknown(treatment=self.unknown)
        reader = run.reader("the batch", leave_out=self.unknown == "exclude")
        sentences = [reader.complete(text, number) for number, text in enumerate(texts, start=1)]
        order = sorted(range(len(sentences)), key=lambda index: len(sentences[index].ids))
        read = run.as_read([sentences[index] for index in order])
        rows: list[tuple[Any, ...]] = [()] * len(texts)
        for index, (sentence, log_probs) in zip(order, run.score_text(read, batch_size=self.batch_size), strict=True):
            rows[index] = self._row(sentence, treatment.apply(log_probs, sentence.unknown_tokens))
        return rows

    def _row(self, sentence: "Sentence", log_probs: np.ndarray) -> tuple[Any, ...]:
        counted = log_probs[~np.isnan(log_probs)]
        row = (float(counted.sum(dtype=np.float64)), len(counted), sum(sentence.unknown))
        return (*row, list(sentence.tokens), log_probs.tolist()) if self.per_token else row

    def _run(self) -> "TextRun":
        if self._opened is None:
            import torch

            from elman.tasks.hub import fetched, named
            from elman.tasks.text.run import TextRun

            if self.threads is not None:
                torch.set_num_threads(self.threads)
            self._opened = TextRun(fetched(named(self.run)), self.device)
        return self._opened


def _ragged(column: list[Any]) -> np.ndarray:
    """Lists of different lengths as an array of objects, [n]."""
    found = np.empty(len(column), dtype=object)
    for place, one in enumerate(column):
        found[place] = one
    return found


def _text(value: Any, row: int, column: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"row {row} of the column {column!r} is no text but {value!r}; leave such rows out first")
    return value
