"""Small networks over trees, and random trees, for tests."""

import numpy as np
import torch

from elman import config
from elman.data.trees.shape import Shape, side_by_side
from elman.decoding.parsing import divided
from elman.network.build import build_model

COMPOSITIONS = {
    "affine": config.Affine(),
    "matrix-vector": config.MatrixVector(rank=2),
    "binary-lstm": config.BinaryTreeLSTM(),
    "child-sum-lstm": config.ChildSumTreeLSTM(),
}


def composition_of(name, size=4, input_size=3, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    made = COMPOSITIONS[name].build(input_size, size)
    made.initialise(config.Initialisation())
    return made.to(dtype)


def tree_model(name="binary-lstm", words=9, labels=5, *, parser=True, dtype=torch.float64, seed=0, **core):
    torch.manual_seed(seed)
    record = config.Recursive(size=4, composition=COMPOSITIONS[name], parser=parser, **core)
    rules = config.Initialisation(embedding=config.Normal(std=1.0), output=config.Normal(std=1.0))
    model = config.Model(encoder=config.Lookup(size=3), core=record, initialisation=rules)
    return build_model(model, words, num_labels=labels).to(dtype).eval()


def random_shape(length, draw, labels=("a", "b", "<none>")):
    """A binary tree over words, its labels drawn."""
    shape = divided(length, lambda span: int(draw.integers(span[0] + 1, span[1])))
    named = tuple(str(draw.choice(labels)) for _ in shape.labels)
    return Shape(shape.num_words, shape.children, shape.heights, named, shape.spans)


def random_trees(lengths, seed=0):
    """Shapes and their nodes side by side."""
    draw = np.random.default_rng(seed)
    shapes = [random_shape(length, draw) for length in lengths]
    trees, rows = side_by_side(shapes)
    return shapes, trees, rows


def nested(shape):
    """A shape as nested tuples of word numbers, as the reference has them."""
    built = list(range(shape.num_words))
    for below in shape.children:
        built.append(tuple(built[child] for child in below))
    return built[-1]
