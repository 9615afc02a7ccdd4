"""The minimal gated unit against a transcription of its equations."""

import numpy as np
import torch

from support import networks


def test_minimal_gated_unit_is_the_papers_equations():
    cell = networks.CELLS["minimal-gated"]
    w = networks.weights(cell, inputs=3, size=4)
    x, (h,) = torch.randn(2, 3, dtype=torch.float64), networks.state(cell)
    (w_f, w_n), (u_f, u_n) = (np.split(part.detach().numpy(), 2) for part in (w.weight_ih, w.weight_hh))
    (b_f, b_n), (d_f, d_n) = (np.split(part.detach().numpy(), 2) for part in (w.bias_ih, w.bias_hh))
    for row, (given, before) in enumerate(zip(x.numpy(), h.detach().numpy(), strict=True)):
        f = 1 / (1 + np.exp(-(w_f @ given + b_f + u_f @ before + d_f)))
        candidate = np.tanh(w_n @ given + b_n + u_n @ (f * before) + d_n)
        found = cell.step(w, x, (h,))[0][row].detach().numpy()
        np.testing.assert_allclose(found, (1 - f) * before + f * candidate, rtol=1e-10)
