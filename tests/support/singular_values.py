"""Singular values as plain linear algebra gives them, and matrices to try things on."""

import torch


def sigma_1(matrix):
    """In float64, whatever the matrix is in."""
    return torch.linalg.matrix_norm(matrix.detach().double(), 2).item()


def some_basis(rows, columns, dtype=torch.float32):
    """Orthonormal columns."""
    return torch.linalg.qr(torch.randn(rows, columns, dtype=dtype))[0]
