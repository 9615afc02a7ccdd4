"""Compositions against NumPy transcriptions, and the trees of a batch against one node at a time."""

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.config.parts import members
from elman.data.trees.shape import Shape, side_by_side
from elman.network.trees.composition import by_height
from reference import trees as reference
from support.tree_networks import COMPOSITIONS, composition_of, nested, random_trees


def one_by_one(composition, leaves, trees):
    """As `by_height`, composing a single node at a time: its reference."""
    rows = list(zip(*(leaf.unbind() for leaf in leaves), strict=True))
    for below in trees.children.tolist():
        children = zip(*(rows[child] for child in below if child >= 0), strict=True)
        above = composition.compose(tuple(torch.stack(parts).unsqueeze(0) for parts in children))
        rows.append(tuple(part.squeeze(0) for part in above))
    return tuple(torch.stack(parts) for parts in zip(*rows, strict=True))


def arrays(tensors):
    return [tensor.detach().numpy() for tensor in tensors]


def gates(matrix, names):
    return dict(zip(names, np.split(matrix, len(names)), strict=True))


def transcribed(name, made):
    """(leaf from a word vector, composition) of the reference with the weights of a composition."""
    numbers = {key: value.detach().numpy() for key, value in made.named_parameters()}
    size = made.size
    if name == "affine":
        W = np.concatenate([numbers["weight_left"], numbers["weight_right"]], 1)
        return lambda x: (numbers["weight_leaf"] @ x + numbers["bias_leaf"],), reference.affine(W, numbers["bias"])
    if name == "matrix-vector":

        def leaf(x):
            a, s, u, v = np.split(numbers["weight_leaf"] @ x + numbers["bias_leaf"], np.cumsum([size, size, 2 * size]))
            return a, reference.word_matrix(s, u.reshape(size, 2), v.reshape(2, size))

        return leaf, reference.matrix_vector(numbers["weight"], numbers["weight_matrix"])
    W, b = gates(numbers["weight_leaf"], "iou"), gates(numbers["bias"], "iouf")
    if name == "child-sum-lstm":
        compose = reference.child_sum_lstm(gates(numbers["weight"], "iouf"), b)
    else:
        sides = [gates(numbers[key], ("i", "o", "u", "f1", "f2")) for key in ("weight_left", "weight_right")]
        compose = reference.binary_lstm({key: [side[key] for side in sides] for key in sides[0]}, b)
    return lambda x: reference.lstm_leaf(W, b, x), compose


def test_every_composition_of_the_recipes_is_tested():
    assert {type(record) for record in COMPOSITIONS.values()} == set(members(config.Composition).values())
    assert {msgspec.inspect.type_info(type(one)).tag for one in COMPOSITIONS.values()} == set(COMPOSITIONS)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_nodes_are_those_of_the_paper(name):
    made = composition_of(name)
    leaf, compose = transcribed(name, made)
    shapes, trees, rows = random_trees([5, 1, 7])
    words = torch.randn(13, 3, dtype=torch.float64)
    states = arrays(by_height(made, made.leaf(words), trees))
    first = 0
    for shape, places in zip(shapes, rows, strict=True):
        own = [leaf(x) for x in words[first : first + shape.num_words].numpy()]
        wanted, _ = reference.states(nested(shape), own, compose)
        for span, row in zip(shape.spans, places, strict=True):
            for ours, theirs in zip(states, wanted[span], strict=True):
                np.testing.assert_allclose(ours[row], theirs, rtol=1e-9, atol=1e-12)
        first += shape.num_words


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_by_height_is_one_by_one_in_values_and_gradients(name):
    made = composition_of(name)
    _, trees, _ = random_trees([4, 2, 1, 6])
    words = torch.randn(13, 3, dtype=torch.float64)
    found = []
    for traverse in (by_height, one_by_one):
        states = traverse(made, made.leaf(words), trees)
        weights = [torch.linspace(-1, 1, leaf.numel(), dtype=leaf.dtype).view_as(leaf) for leaf in states]
        loss = sum((leaf * weight).sum() for leaf, weight in zip(states, weights, strict=True))
        found.append((states, torch.autograd.grad(loss, list(made.parameters()))))
    (states, gradients), (others, theirs) = found
    for one, two in zip((*states, *gradients), (*others, *theirs), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-11)
    with torch.no_grad():
        for one, two in zip(by_height(made, made.leaf(words), trees), others, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_gradients(name):
    made = composition_of(name, size=2, input_size=2)
    _, trees, _ = random_trees([3, 2])
    words = torch.randn(5, 2, dtype=torch.float64)
    names, values = zip(*made.named_parameters(), strict=True)

    def vectors(*values):
        def run():
            return by_height(made, made.leaf(words), trees)[0]

        return torch.func.functional_call(
            _Called(made, run), dict(zip((f"made.{n}" for n in names), values, strict=True))
        )

    assert torch.autograd.gradcheck(vectors, tuple(value.detach().requires_grad_() for value in values), fast_mode=True)


class _Called(torch.nn.Module):
    def __init__(self, made, run):
        super().__init__()
        self.made, self.run = made, run

    def forward(self):
        return self.run()


def test_child_sum_reads_any_number_of_children_in_any_order():
    made = composition_of("child-sum-lstm")
    leaf, compose = transcribed("child-sum-lstm", made)
    words = torch.randn(5, 3, dtype=torch.float64)
    state = made.leaf(words)
    rows = torch.tensor([[0, 1, 2, 3], [4, 2, -1, -1]])
    below = tuple(part[rows.clamp_min(0)] for part in state)
    found = arrays(made.compose(below, rows >= 0))
    own = [leaf(x) for x in words.numpy()]
    for row, children in enumerate(([0, 1, 2, 3], [4, 2])):
        for ours, theirs in zip(found, compose(*(own[child] for child in children)), strict=True):
            np.testing.assert_allclose(ours[row], theirs, rtol=1e-9)
    turned = made.compose(tuple(part.flip(1) for part in below), (rows >= 0).flip(1))
    np.testing.assert_allclose(arrays(turned)[0], found[0], rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in COMPOSITIONS if name != "child-sum-lstm"])
def test_a_binary_composition_knows_left_from_right(name):
    made = composition_of(name)
    state = made.leaf(torch.randn(2, 3, dtype=torch.float64))
    pair = tuple(part.unsqueeze(0) for part in state)
    turned = made.compose(tuple(part.flip(1) for part in pair))[0]
    assert not torch.allclose(made.compose(pair)[0], turned)


def test_the_bias_of_forget_gates_has_its_own_rule():
    for name in ("binary-lstm", "child-sum-lstm"):
        made = composition_of(name)
        made.initialise(config.Initialisation(forget_bias=1.5))
        assert (made.bias[12:] == 1.5).all()
        assert (made.bias[:12] != 1.5).all()


def test_nodes_of_one_height_may_have_different_numbers_of_children():
    made = composition_of("child-sum-lstm")
    spans = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 2), (2, 5), (0, 5))
    shape = Shape(5, ((0, 1), (2, 3, 4), (5, 6)), (1, 1, 2), ("<none>",) * 8, spans)
    trees, _ = side_by_side([shape])
    words = torch.randn(5, 3, dtype=torch.float64)
    for one, two in zip(
        by_height(made, made.leaf(words), trees), one_by_one(made, made.leaf(words), trees), strict=True
    ):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-11)
