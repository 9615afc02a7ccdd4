"""Pairs for tests: the target is the source from its end, or the source itself; everything is learnable."""

import numpy as np
import torch

from elman import config
from elman.data.batches import Batch, Source
from elman.data.text.vocabulary import Vocabulary
from elman.kinds.pairs.constraint import TreeConstraint
from elman.network.build import build_model

EOS = 0
"""Ends a target, and precedes it."""

TREES = Vocabulary(("<eos>", "(A", "X", ")A", "(B", "<unk>", ")B", "Y", ")C", "Z"), (1,) * 10)
"""Symbols of linear trees; `C` never opens."""


def sequences(count, symbols, longest, seed=0):
    """Lists of 1 to `longest` ids, never EOS."""
    draw = np.random.default_rng(seed)
    return [draw.integers(1, symbols, draw.integers(1, longest + 1)).tolist() for _ in range(count)]


def reversal(sources):
    return [source[::-1] for source in sources]


def padded(sequences):
    """Ids [T, B] with zeros after the end, and the mask."""
    mask = torch.arange(max(map(len, sequences))).unsqueeze(1) < torch.tensor([len(one) for one in sequences])
    ids = torch.zeros(mask.shape, dtype=torch.int64)
    for column, one in enumerate(sequences):
        ids[: len(one), column] = torch.tensor(one)
    return ids, mask


def batch(sources, targets):
    """Pairs side by side, as a trainer reads them."""
    inputs, mask = padded([[EOS, *target] for target in targets])
    return Batch(inputs, padded([[*target, EOS] for target in targets])[0], mask, None, Source(*padded(sources)))


def model_recipe(size=8, layers=1, output=None, source=None, **core):
    """A bidirectional LSTM, a decoder of the same width."""
    cell = core.pop("cell", {"kind": "lstm"})
    return config.parse_recipe(
        {
            "title": "toy pairs",
            "data": {"kind": "pairs"},
            "model": {
                "encoder": {"kind": "lookup", "size": size},
                "source": {
                    "encoder": {"kind": "lookup", "size": size},
                    "stack": {"sizes": [size // 2] * layers, "cell": cell},
                    **(source or {}),
                },
                "core": {"kind": "attentive", "stack": {"sizes": [size] * layers, "cell": cell}, **core},
                "output": output or {},
            },
            "training": {"epochs": 1, "optimiser": {"kind": "adam"}},
        },
        "toy pairs",
    ).model


def without_attention(size=8, layers=1, cell=None, **model):
    """A one-directional reader, and a stack that continues from its last state."""
    stack = {"sizes": [size] * layers, "cell": cell or {"kind": "lstm"}}
    source = {"encoder": {"kind": "lookup", "size": size}, "stack": stack, "bidirectional": False}
    parts = {"encoder": {"kind": "lookup", "size": size}, "source": source, "core": {"kind": "stack", **stack}}
    training = {"epochs": 1, "optimiser": {"kind": "adam"}}
    recipe = {"title": "toy pairs", "data": {"kind": "pairs"}, "model": parts | model, "training": training}
    return build_model(config.parse_recipe(recipe, "toy pairs").model, 10)


def trees(**options):
    """What trees of these symbols must be."""
    return TreeConstraint(TREES, **{"hide_tags": False, **options})


def model(symbols=10, num_source=None, **options):
    return build_model(model_recipe(**options), symbols, num_source=num_source or symbols)
