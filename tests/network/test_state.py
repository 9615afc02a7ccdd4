"""A state is a value: nested tuples of tensors with the batch first."""

import torch

from elman.network.state import concatenate, detach, leaves, map_state, rebuild, restart, select


def example(rows=3, offset=0.0):
    def leaf(*shape):
        return torch.arange(rows * 2.0).view(rows, *shape) + offset

    return ((leaf(2), leaf(2) + 100), (leaf(2, 1),), leaf(1, 2))


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


def test_leaves_and_rebuild_are_inverse():
    state = example()
    rebuilt = rebuild(example(offset=5.0), iter(list(leaves(state))))
    assert equal(rebuilt, state)
    assert [type(part) for part in rebuilt] == [tuple, tuple, torch.Tensor]


def test_map_state_takes_several_states():
    summed = map_state(torch.add, example(), example())
    assert equal(summed, map_state(lambda leaf: 2 * leaf, example()))


def test_detach_shares_values_not_history():
    state = map_state(lambda leaf: leaf.requires_grad_() * 2, example())
    assert all(leaf.grad_fn is not None for leaf in leaves(state))
    assert all(not leaf.requires_grad for leaf in leaves(detach(state)))
    assert equal(detach(state), state)


def test_restart_touches_fresh_rows_only():
    old, beginning = example(), example(offset=-7.0)
    new = restart(old, torch.tensor([False, True, False]), beginning)
    for before, start, after in zip(leaves(old), leaves(beginning), leaves(new), strict=True):
        assert torch.equal(after[[0, 2]], before[[0, 2]])
        assert torch.equal(after[1], start[1])
    assert equal(old, example())


def test_select_and_concatenate_are_inverse():
    state = example()
    assert equal(concatenate([select(state, slice(0, 1)), select(state, slice(1, 3))]), state)
    repeated = select(state, torch.tensor([2, 2]))
    assert all(torch.equal(leaf[0], leaf[1]) for leaf in leaves(repeated))
