"""An echo state network goes on with the Mackey-Glass series by itself (Jaeger 2001; Jaeger & Haas 2004)."""

from dataclasses import dataclass

import torch

from elman import config
from elman.data.classic.mackey_glass import mackey_glass
from elman.learning.echo_state import fit_next
from elman.network.cores.core import Surroundings
from elman.network.cores.reservoir import Reservoir
from elman.reproduce.claim import Measurement


@dataclass(frozen=True)
class Foreseen:
    """NRMSE so many steps ahead: runs of its own from many points beyond the steps that it has learnt from.

    Attributes:
        reservoirs: how many are tried.
        units, radius, leak, density, bias_scale: of each.
        washout, learnt, heard: steps before learning begins, until it ends, and of the whole series.
        ahead: how far a run goes.
        every: steps from the beginning of one run to that of the next.

    """

    reservoirs: int = 5
    units: int = 500
    radius: float = 1.0
    leak: float = 0.7
    density: float = 0.02
    bias_scale: float = 0.2
    washout: int = 200
    learnt: int = 3_200
    heard: int = 6_200
    ahead: int = 84
    every: int = 50

    def __call__(self, seed: int, _: str | None) -> Measurement:
        """Learn and foresee."""
        values = torch.from_numpy(mackey_glass(self.heard, seed=seed))
        errors = [self._nrmse(values, self.reservoirs * seed + index) for index in range(self.reservoirs)]
        figures = {"NRMSE": sum(errors) / self.reservoirs, "worst": max(errors)}
        return Measurement(figures, {"NRMSE": sorted(errors)})

    def _nrmse(self, values: torch.Tensor, seed: int) -> float:
        """Of one reservoir; the error over the standard deviation of the series."""
        series = (values - 1).tanh()[:, None, None]
        record = config.Reservoir(
            size=self.units, radius=self.radius, leak=self.leak, density=self.density, bias_scale=self.bias_scale
        )
        core = Reservoir(record, Surroundings(input_size=1)).double()
        drawn = core.draw(torch.Generator().manual_seed(seed))
        network = fit_next(drawn, series[: self.learnt], washout=self.washout)
        starts = torch.arange(self.learnt + 2 * self.every, self.heard - self.ahead - 1, self.every)
        heard, _ = core.run(series, core.begin(1))
        said, _ = network.predict(series, network.begin(1))
        ahead, _ = network.generate(said[starts, 0], (heard[starts, 0],), self.ahead - 1)
        found = ahead[-1, :, 0].clamp(-0.999, 0.999).atanh() + 1
        return ((found - values[starts + self.ahead]).square().mean() / values.var()).sqrt().item()
