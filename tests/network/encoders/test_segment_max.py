"""The greatest of runs of rows: values and gradients, ties shared."""

import torch

from elman.network.encoders.characters import segment_max


def test_values_and_gradients_are_those_of_each_run_alone():
    torch.manual_seed(0)
    x = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([2, 1, 6])
    weight = torch.randn(3, 4, dtype=torch.float64)
    found = segment_max(x, lengths)
    plain = torch.stack([part.amax(0) for part in x.split(lengths.tolist())])
    assert torch.equal(found, plain)
    (by_kernel,) = torch.autograd.grad((found * weight).sum(), x)
    (by_parts,) = torch.autograd.grad((plain * weight).sum(), x)
    assert torch.equal(by_kernel, by_parts)


def test_ties_share_gradients_of_either_sign():
    x = torch.tensor([[1.0, 2.0], [1.0, 2.0], [0.0, 2.0], [0.0, 0.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(segment_max(x, torch.tensor([3, 1])), x, torch.tensor([[-6.0, 6.0], [-1.0, 1.0]]))
    assert gradient.tolist() == [[-3.0, 2.0], [-3.0, 2.0], [0.0, 2.0], [-1.0, 1.0]]
