"""How causal models of transformers predict symbols, in few passes over memory.

Rows of symbols that begin alike are a tree: a symbol that rows share is read once, sees those before it in its row
alone, and has its logits formed once. Models that cannot read trees read each row alone; the figures are the same.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

BLOCK, ROWS = 1 << 10, 1 << 9
"""Tokens of the vocabulary, and symbols, whose logits are formed at once: few enough for the caches of a processor."""

LOGITS = 1 << 21
"""Logits formed at once where all of a symbol are needed: more would be written to fresh memory again and again."""

SYMBOLS = 1 << 13  # symbols read side by side at most, the padding included
TREE = 64  # symbols of a tree at most: each of them is compared with all others
Tree: TypeAlias = dict[int, list[int]]
"""Rows of symbols by their numbers, each with the places of its symbols [n]; rows that begin alike share places."""


def size_of(tree: Tree) -> int:
    """How many symbols a tree has."""
    return max((path[-1] + 1 for path in tree.values() if path), default=0)


def trees_of(rows: Sequence[np.ndarray], size: int) -> list[Tree]:
    """Rows of symbols [n] in trees of at most `size` symbols; a longer row, or any one where `size` is 0, is alone."""
    trees, count, before, path = list[Tree](), 0, list[int](), list[int]()
    for row, number in sorted((row.tolist(), number) for number, row in enumerate(rows)):
        pairs = enumerate(zip(row, before, strict=False))
        shared = next((at for at, (own, other) in pairs if own != other), min(len(row), len(before)))
        if not trees or count + len(row) - shared > size:
            trees.append({})
            count = shared = 0
        before, path = row, [*path[:shared], *range(count, count + len(row) - shared)]
        count, trees[-1][number] = count + len(row) - shared, path
    return trees


def _counted(lengths: np.ndarray) -> np.ndarray:
    """The ranges 0 to l - 1 of the lengths l [n], one after the other: of 2 and 3 they are 0 1 0 1 2."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def with_fused_gelu(model: Any) -> Any:
    """The model, its approximate GELU of eight passes over the values replaced by torch's of one."""
    from transformers.activations import NewGELUActivation

    for part in list(model.modules()):
        for name, child in part.named_children():
            if isinstance(child, NewGELUActivation):
                setattr(part, name, torch.nn.GELU("tanh"))
    return model


def blocks_of(states: torch.Tensor, head: Any) -> Iterator[torch.Tensor]:
    """The logits of states [N, H], or of logits [N, V] where no head follows, in blocks of the vocabulary."""
    if type(head) is not torch.nn.Linear:
        yield from (states if head is None else head(states)).float().split(BLOCK, -1)
        return
    for at in range(0, len(head.weight), BLOCK):
        bias = None if head.bias is None else head.bias[at : at + BLOCK]
        yield torch.nn.functional.linear(states, head.weight[at : at + BLOCK], bias).float()


def log_probs_of(blocks: Iterable[torch.Tensor], rows: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """Log-probabilities [N] of symbols [N] by rows [N] of logits [R, V], which come in blocks.

    The sum of a block's exponentials is one by the largest value of its softmax, which torch forms in one pass.
    """
    at, picked, sums = 0, torch.zeros(len(rows), device=rows.device), list[torch.Tensor]()
    for logits in blocks:
        size, own = logits.shape[-1], following - at
        picked = torch.where((own >= 0) & (own < size), logits[rows, own.clamp(0, size - 1)], picked)
        largest = logits.amax(-1).clamp_min_(torch.finfo(torch.float32).min).double()
        sums.append(largest - logits.softmax(-1).amax(-1).nan_to_num_(1.0).double().log_())
        at += size
    return picked.double() - torch.stack(sums, -1).logsumexp(-1)[rows]


def figures_of(
    logits: torch.Tensor, rows: torch.Tensor, following: torch.Tensor, spaces: Sequence[int]
) -> torch.Tensor:
    """Log-probability, rank, entropy and space [4, N] of symbols `following` [N] by rows [N] of logits [R, V].

    The rows ascend, and none is left out.
    """
    log_probs, of_rows = logits.log_softmax(-1), logits if len(rows) == len(logits) else logits[rows]
    asked = torch.tensor(spaces, dtype=torch.long, device=logits.device)
    values = [
        log_probs[rows, following],
        (of_rows > logits[rows, following].unsqueeze(-1)).sum(-1) + 1,
        torch.special.entr(log_probs.exp()).sum(-1)[rows],
        log_probs[:, asked].logsumexp(-1)[rows],
    ]
    return torch.stack([value.double() for value in values])


class Network:
    """A causal model of transformers with `vocabulary` symbols, which reads `limit` of them at once."""

    def __init__(self, model: Any, vocabulary: int, limit: int) -> None:
        self.model, self.vocabulary, self.limit = model, vocabulary, limit

    @functools.cached_property
    def _parts(self) -> tuple[Any, Any] | None:
        """The network below its logits and what forms these, where the two are all of the model; otherwise None."""
        below, head = self.model.base_model, self.model.get_output_embeddings()
        if head is None or below is self.model:
            return None
        ids = torch.arange(min(3, self.vocabulary), device=self.model.device).unsqueeze(0)
        whole, state = self.model(input_ids=ids).logits, getattr(below(input_ids=ids), "last_hidden_state", None)
        fits = state is not None and state.shape[-1] == head.weight.shape[-1]
        return (below, head) if fits and torch.equal(head(state), whole) else None

    @functools.cached_property
    def _branches(self) -> bool:
        """Whether the model reads trees: whether they give the same figures as rows read alone."""
        size = min(TREE, self.limit)
        chain = np.random.default_rng(0).integers(self.vocabulary, size=size + 1)
        rows = [chain, *(np.append(chain[:at], chain[-at:]) for at in range(1, size // 4, 2))]
        try:
            alone, found = (np.concatenate(self.figures(rows, None, SYMBOLS, size=one), 1) for one in (0, size))
        except Exception:
            return False
        return bool(np.allclose(found, alone, rtol=1e-5, atol=1e-5))

    def figures(
        self, rows: list[np.ndarray], spaces: Sequence[int] | None, batch_size: int, size: int | None = None
    ) -> list[np.ndarray]:
        """Of what follows each symbol of each row [n]: log-probability of the next one, also rank, entropy, space.

        Each is [1 or 4, n]; without `spaces` there is none of what follows the last symbol, which is then not read.
        Rows are read in trees of `size` symbols at most; by default alone where the model cannot read trees. As many
        are read side by side as `batch_size` rows of half a tree have symbols.
        """
        figures = [np.zeros((1 if spaces is None else 4, len(row))) for row in rows]
        rows = rows if spaces is None else [np.append(row, 0) for row in rows]
        if size is None:
            size = min(TREE, self.limit) if len(rows) > 1 and self._branches else 0
        batch, longest = list[Tree](), 0
        for tree in [*sorted(trees_of([row[:-1] for row in rows], size), key=size_of), {}]:
            longest = size_of(tree)
            full = (len(batch) + 1) * longest > min(SYMBOLS, batch_size * TREE // 2)
            if batch and (full or not tree or longest > size >= size_of(batch[-1])):
                self._read(batch, rows, figures, spaces)
                batch = []
            batch.append(tree)
        return figures

    @torch.inference_mode()
    def _read(
        self, trees: list[Tree], rows: list[np.ndarray], figures: list[np.ndarray], spaces: Sequence[int] | None
    ) -> None:
        """Write the figures of the rows of trees that are read side by side.

        Padding stands after a tree, where no symbol of it sees it.
        """
        width, device = max(1, *map(size_of, trees)), self.model.device
        paths = [(number, at * width, path) for at, tree in enumerate(trees) for number, path in tree.items()]
        spots = np.array([begin + place for _, begin, path in paths for place in path], dtype=np.int64)
        lengths = np.array([len(path) for _, _, path in paths])
        ids, depths = np.zeros((2, len(trees) * width), np.int64)
        ids[spots], steps = np.concatenate([rows[number][:-1] for number, _, _ in paths]), _counted(lengths)
        depths[spots] = steps
        following = np.concatenate([rows[number][1:] for number, _, _ in paths])
        asked, back = np.unique((spots << 32) + following, return_inverse=True)
        nodes, of_nodes = np.unique(asked >> 32, return_inverse=True)
        given: dict[str, np.ndarray] = {"input_ids": ids.reshape(-1, width)}
        if any(path and path[-1] >= len(path) for _, _, path in paths):
            seen, own = np.tile(np.eye(width, dtype=bool), (len(trees), 1)), np.repeat(np.arange(len(spots)), steps + 1)
            seen[spots[own], spots[own - _counted(steps + 1)] % width] = True
            mask = np.where(seen, np.float32(0), np.finfo(np.float32).min)
            given |= {"position_ids": depths.reshape(-1, width), "attention_mask": mask.reshape(-1, 1, width, width)}
        below, head = self._parts or (None, None)
        tensors = {name: torch.from_numpy(values).to(device) for name, values in given.items()}
        read = self.model(**tensors).logits if below is None else below(**tensors)[0]
        states = read.flatten(0, 1)[torch.from_numpy(nodes).to(device)]
        found = np.empty((len(figures[0]), len(asked)))
        in_blocks = spaces is None and type(head) is torch.nn.Linear
        step = ROWS if in_blocks else max(1, LOGITS // self.vocabulary)
        for start in range(0, len(nodes), step):
            at = slice(*np.searchsorted(of_nodes, [start, start + step]))
            own, wanted = torch.from_numpy(np.stack([of_nodes[at] - start, asked[at] & 0xFFFFFFFF])).to(device)
            if spaces is not None:
                logits = states[start : start + step] if head is None else head(states[start : start + step])
                found[:, at] = figures_of(logits.float(), own, wanted, spaces).cpu().numpy()
            else:
                found[0, at] = log_probs_of(blocks_of(states[start : start + step], head), own, wanted).cpu().numpy()
        for (number, _, path), part in zip(paths, np.split(found[:, back], np.cumsum(lengths)[:-1], 1), strict=True):
            figures[number][:, : len(path)] = part
