"""Networks over trees, all nodes of one height at once or one at a time: `python benchmarks/trees.py [PART ...]`.

Binary trees over sentences of 5 to 40 words are drawn, 16 of them side by side; vectors have the sizes of the recipes.
`nodes`: the vectors of all nodes and their gradients, in both ways. `search`: the chart and the greedy search.
"""

import json
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

import timing
from elman import config
from elman.config.network import Composition
from elman.data.trees.shape import Trees, side_by_side
from elman.decoding.parsing import chart_search, divided, greedy_search
from elman.network.build import build_model
from elman.network.tree_model import TreeModel
from elman.network.trees.composition import by_height, one_by_one

WORDS, LABELS, SHORTEST, LONGEST = 1000, 40, 5, 40
COMPOSITIONS: dict[str, tuple[Composition, int]] = {
    "affine": (config.Affine(), 64),
    "matrix-vector": (config.MatrixVector(), 24),
    "binary-lstm": (config.BinaryTreeLSTM(), 64),
    "child-sum-lstm": (config.ChildSumTreeLSTM(), 64),
}
"""Each with the size of its recipe."""

BATCH = 16


def drawn_trees(draw: np.random.Generator) -> Trees:
    """Random binary trees side by side."""
    lengths = draw.integers(SHORTEST, LONGEST + 1, BATCH).tolist()
    shapes = [divided(length, lambda span: int(draw.integers(span[0] + 1, span[1]))) for length in lengths]
    return side_by_side(shapes)[0]


def model_of(composition: Composition, size: int) -> TreeModel:
    """A parser with random weights."""
    core = config.Recursive(size=size, composition=composition, parser=True)
    model = build_model(config.Model(encoder=config.Lookup(size=64), core=core), WORDS, num_labels=LABELS)
    assert isinstance(model, TreeModel)
    return model.eval()


def nodes_of(model: TreeModel, trees: Trees) -> timing.Candidates:
    """The vectors of all nodes and their gradients, in both ways."""
    leaves = model.core.composition.leaf(torch.randn(len(trees.places), 64))
    parameters = [one for name, one in model.core.composition.named_parameters() if "leaf" not in name]

    def step(traverse: Callable[..., tuple[torch.Tensor, ...]]) -> None:
        own = tuple(leaf.detach().requires_grad_() for leaf in leaves)
        vectors = traverse(model.core.composition, own, trees)[0]
        torch.autograd.grad(vectors, parameters, torch.ones_like(vectors), allow_unused=True)

    return {"by height": lambda: step(by_height), "one by one": lambda: step(one_by_one)}


def searches(model: TreeModel, trees: Trees, draw: np.random.Generator) -> timing.Candidates:
    """Both searches over the sentences of the trees."""
    words = torch.from_numpy(draw.integers(0, WORDS, (int(trees.lengths.max()), BATCH)))
    with torch.no_grad():
        leaves = model.leaves(words, trees.lengths)
    return {
        "chart": lambda: chart_search(model, leaves, trees.lengths),
        "greedy": lambda: greedy_search(model, leaves, trees.lengths),
    }


def main() -> None:
    options = timing.arguments(__doc__ or "", ("nodes", "search"))
    draw = np.random.default_rng(0)
    trees = drawn_trees(draw)
    count = len(trees.sentence)
    facts: dict[str, object] = {
        "threads": options.threads,
        "cpu_time": options.cpu_time,
        "trees": BATCH,
        "nodes": count,
    }
    for name, (composition, size) in COMPOSITIONS.items():
        model = model_of(composition, size)
        for part in options.parts:
            candidates = nodes_of(model, trees) if part == "nodes" else searches(model, trees, draw)
            for candidate, seconds in timing.in_turns(candidates, options).items():
                rate = {"nodes_per_s": round(count / median(seconds)), "trees_per_s": round(BATCH / median(seconds), 1)}
                times = {key: round(1e3 * value, 2) for key, value in timing.spread(seconds).items()}
                row = {"part": part, "composition": name, "size": size, "candidate": candidate, **rate, **times}
                print(json.dumps(facts | row), flush=True)


if __name__ == "__main__":
    main()
