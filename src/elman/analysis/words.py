"""Words by the states that follow them: a hierarchical clustering of averaged hidden states (Elman 1990)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.cluster import hierarchy

from elman.data.windows import EvaluationWindows
from elman.drawing.dendrogram import draw
from elman.drawing.page import Figure, Section, Table, write_page
from elman.errors import UserError
from elman.evaluation.perplexity import traces
from elman.jobs import Advance, advancing
from elman.network.model import LanguageModel

Method: TypeAlias = Literal["average", "complete", "single", "ward"]
Metric: TypeAlias = Literal["euclidean", "cosine"]


class WordStates(NamedTuple):
    """The mean [V, H] of the states after each symbol, float64, zero for symbols that were not read; counts [V]."""

    means: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]


@torch.inference_mode()
def word_states(
    model: LanguageModel, windows: EvaluationWindows, level: int, num_words: int, advance: Advance = None
) -> WordStates:
    """The states of a level of the core, averaged by the symbol just read, over all of a stream.

    Level 0 is the encoder, -1 the last layer. The symbol that precedes the stream is counted too.
    """
    sums, counts = None, torch.zeros(num_words, dtype=torch.int64)
    for batch, _, trace in advancing(traces(model, windows), windows.num_windows, advance):
        read, states = batch.inputs[batch.mask].cpu(), trace.raw[level][batch.mask].cpu().double()
        if sums is None:
            sums = torch.zeros(num_words, states.shape[1], dtype=torch.float64)
        sums.index_add_(0, read, states)
        counts += torch.bincount(read, minlength=num_words)
    assert sums is not None, "a stream has at least one window"
    return WordStates((sums / counts.clamp(min=1).unsqueeze(1)).numpy(), counts.numpy())


@torch.inference_mode()
def states_along(model: LanguageModel, windows: EvaluationWindows, level: int) -> Iterator[npt.NDArray[np.float32]]:
    """The states [n, H] of a level after each symbol of a stream, window by window."""
    for batch, _, trace in traces(model, windows):
        yield trace.raw[level][batch.mask].float().cpu().numpy()


class Clustering(NamedTuple):
    """A clustering of n words.

    Attributes:
        words: in the order of the dendrogram, n.
        counts: occurrences of each, [n].
        merges: rows of SciPy's linkage matrix, [n - 1, 4]; its indices are places in `given`.
        given: the words in the order of the vectors.
        groups: number of the group of each of `words`, from 1, [n].
    """

    words: list[str]
    counts: list[int]
    merges: npt.NDArray[np.float64]
    given: list[str]
    groups: list[int]

    def members(self) -> list[list[str]]:
        """The words of each group, in the order of the dendrogram."""
        return [
            [word for word, group in zip(self.words, self.groups, strict=True) if group == number]
            for number in dict.fromkeys(self.groups)
        ]


def cluster(
    words: Sequence[str],
    vectors: npt.NDArray[np.float64],
    counts: Sequence[int],
    *,
    method: Method = "average",
    metric: Metric = "euclidean",
    groups: int = 4,
) -> Clustering:
    """Cluster words by their vectors [n, H], n > 1; leaves are ordered so that neighbours are near.

    The order follows Bar-Joseph, Gifford & Jaakkola (2001). Raises UserError where the method needs another metric,
    or a vector has no direction.
    """
    if method == "ward" and metric != "euclidean":
        raise UserError("--method ward minimises squared distances: use --metric euclidean, or --method average")
    if metric == "cosine" and not np.abs(vectors).sum(axis=1).all():
        raise UserError("--metric cosine: the average state of a word is zero; use --metric euclidean")
    merges = hierarchy.linkage(vectors, method=method, metric=metric, optimal_ordering=True)
    order = hierarchy.leaves_list(merges)
    cut = hierarchy.fcluster(merges, groups, criterion="maxclust")
    return Clustering(
        [words[place] for place in order],
        [int(counts[place]) for place in order],
        merges,
        list(words),
        [int(cut[place]) for place in order],
    )


def write_words_page(out: Path, found: Clustering, *, run: str, text: str, level: str, distance: str) -> Path:
    """Write the page with the dendrogram; raises UserError where `out` is a folder or cannot be written."""
    members = found.members()
    rows = [[str(number), str(len(group)), " ".join(group)] for number, group in enumerate(members, start=1)]
    drawing = draw(found.merges, found.given, "words", f"{len(found.words)} words by {level}", distance)
    return write_page(
        out,
        kind="Words by their states",
        title=run,
        verdict=f"{len(found.words)} words fall into {len(members)} groups of {', '.join(r[1] for r in rows)}.",
        text=[
            f"The state of {level} after a word, averaged over all places of the word in {text}, after Elman (1990,"
            " Fig. 7): words are near each other if the network expects similar things after them. Groups are cut from"
            " the tree at one height."
        ],
        sections=[
            Section("Dendrogram", figures=[Figure("", drawing)]),
            Section("Groups", tables=[Table("", ["group", "words", "members"], rows, prose=True)]),
        ],
    )
