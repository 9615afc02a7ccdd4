"""An echo state network goes on with the Mackey-Glass series by itself (Jaeger 2001; Jaeger & Haas 2004)."""

import torch

from elman.cores.reservoir import Reservoir
from elman.data.classic.mackey_glass import mackey_glass
from elman.learning.echo import fit_next
from elman.reproduce.claim import Measurement

LEARNT, HEARD, RESERVOIRS, AHEAD = 3_200, 6_200, 5, 84


def foreseen(seed: int, _: str | None) -> Measurement:
    """NRMSE 84 steps ahead: runs of its own from many points beyond the 3,200 steps that it has learnt from."""
    values = torch.from_numpy(mackey_glass(HEARD, seed=seed))
    errors = [nrmse(values, RESERVOIRS * seed + index) for index in range(RESERVOIRS)]
    return Measurement({"NRMSE": sum(errors) / RESERVOIRS, "worst": max(errors)}, {"NRMSE": sorted(errors)})


def nrmse(values: torch.Tensor, seed: int) -> float:
    """Of one reservoir of 500 units; the error over the standard deviation of the series."""
    series = (values - 1).tanh()[:, None, None]
    core = Reservoir(1, 500, radius=1.0, leak=0.7, density=0.02, bias_scale=0.2).double()
    network = fit_next(core.draw(torch.Generator().manual_seed(seed)), series[:LEARNT], washout=200)
    starts = torch.arange(LEARNT + 100, HEARD - AHEAD - 1, 50)
    heard, _ = core.run(series, core.begin(1))
    said, _ = network.predict(series, network.begin(1))
    ahead, _ = network.generate(said[starts, 0], (heard[starts, 0],), AHEAD - 1)
    found = ahead[-1, :, 0].clamp(-0.999, 0.999).atanh() + 1
    return ((found - values[starts + AHEAD]).square().mean() / values.var()).sqrt().item()
