"""The dynamics of runs: decay of the state without input, spectral radius, gradient norms, success of training.

The page of `elman analyze dynamics` has the figures and tables of Kanai's thesis, section 3.5.
"""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elman.drawing import plots
from elman.drawing.page import Figure, Section, Table, require_file_name, write_page
from elman.drawing.plots import Curve, Mark, Plot
from elman.drawing.style import legend
from elman.errors import UserError
from elman.network.cores.layer import plain_step
from elman.network.cores.stack import Layers
from elman.network.state import leaves, map_state
from elman.report.folder import RunFolder, read_folder
from elman.report.metrics import Train
from elman.tasks.hub import fetched
from elman.tasks.open import open_run


@torch.no_grad()
def state_decay(core: Layers, *, trials: int = 50, steps: int = 100, kick: float = 0.1, seed: int = 0) -> Tensor:
    """The norm ||h_t|| of all layers after an input x_1 ~ N(0, kick^2 I) and none afterwards (Fig. 3.2), [steps].

    The lowest layer reads the input at step 1; the mean is taken over `trials` inputs. Defaults are the thesis's.
    """
    advance, state = plain_step(core), map_state(Tensor.double, core.begin(trials))
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randn(trials, core.dims[0], generator=generator, dtype=torch.float64)
    x = kick * draw.to(next(leaves(state)).device)
    norms = []
    for _ in range(steps):
        state = advance(x, state)
        norms.append(torch.cat([next(leaves(layer)) for layer in state], dim=1).norm(dim=1).mean())
        x = torch.zeros_like(x)
    return torch.stack(norms)


def decay_rate(norms: Tensor) -> float:
    """The factor per step in the last half of the decay, as far as float64 resolves it; 1 for no decay.

    With sigma_1(W_hh) <= 2 - delta it is asymptotically at most 1 - delta / 4 in a bias-free GRU.
    """
    seen = norms[norms > 1e-12 * norms.max()]
    half = seen[len(seen) // 2 :]
    if len(half) < 2:
        return math.nan
    return float((half[-1] / half[0]) ** (1 / (len(half) - 1)))


@dataclasses.dataclass(frozen=True)
class Dynamics:
    """The dynamics of one run.

    `norms`: of the state after a kick, step by step; `decay_rate` the factor per step in their last half.
    `success`: whether the validation loss of every epoch was below the untrained model's (thesis 3.5.1); None for
    an unfinished run; `verdict` is the same in words.
    """

    name: str
    norms: list[float]
    decay_rate: float
    lines: tuple[Train, ...]
    success: bool | None
    verdict: str

    @property
    def largest_radius(self) -> float:
        """Of J, over the logged steps; NaN if it was not logged."""
        radii = [line.spectral_radius for line in self.lines]
        return max((radius for radius in radii if math.isfinite(radius)), default=math.nan)

    @property
    def largest_norm(self) -> float:
        """Of the gradient before clipping, over the logged steps; NaN if it was not logged."""
        return max((line.grad_norm for line in self.lines if not math.isnan(line.grad_norm)), default=math.nan)


def write_dynamics(
    folders: Sequence[Path], out: Path | None, device: torch.device, *, trials: int, steps: int, kick: float
) -> tuple[Path, list[Dynamics]]:
    """Measure the runs and write the page; raises UserError where a folder is not a run with recurrent layers."""
    page = require_file_name(fetched(folders[0]) / "dynamics.html" if out is None else out)
    found = [examine(Path(folder), device, trials=trials, steps=steps, kick=kick) for folder in folders]
    return write(page, found), found


def examine(folder: Path, device: torch.device, *, trials: int, steps: int, kick: float) -> Dynamics:
    """Measure a run; raises UserError where it has no recurrent layers."""
    place = fetched(folder)
    run, written = open_run(place, device), read_folder(place)
    core = run.model.core
    if not isinstance(core, Layers):
        raise UserError(f"{folder}: its model has no recurrent layers, and so no state to follow")
    norms = state_decay(core, trials=trials, steps=steps, kick=kick)
    success, verdict = succeeded(written, run.recipe.training.epochs, run.uniform_nll())
    name = folder.name or str(folder)
    return Dynamics(name, norms.tolist(), decay_rate(norms), written.metrics.train, success, verdict)


def succeeded(run: RunFolder, epochs: int, uniform: float) -> tuple[bool | None, str]:
    """Whether training succeeded; `uniform` replaces the untrained loss where the run did not log it.

    A run is finished after all epochs, or where its patience ended it.
    """
    untrained = next((event.nll for event in run.metrics.events if event.event == "untrained"), uniform)
    for check in run.metrics.valid:
        if not check.nll < untrained:
            return False, f"failed: {check.nll:.2f} nats after epoch {check.epoch:g}, untrained {untrained:.2f}"
    done = max((check.epoch for check in run.metrics.valid), default=0.0)
    waited = next((at for at, check in enumerate(reversed(run.metrics.valid)) if check.best), 0)
    patience = run.recipe_table.get("training", {}).get("patience")
    if done < epochs and (patience is None or waited < patience):
        return None, f"not finished: epoch {done:g} of {epochs}, or the loss was not finite"
    return True, f"succeeded: always below {untrained:.2f} nats"


def summary(found: Dynamics) -> dict[str, Any]:
    """Return the figures as JSON writes them, NaN as null."""
    numbers = {name: getattr(found, name) for name in ("decay_rate", "largest_radius", "largest_norm")}
    plain = {name: None if math.isnan(value) else value for name, value in numbers.items()}
    return {"run": found.name, "success": found.success, "verdict": found.verdict, **plain, "norms": found.norms}


def write(out: Path, found: Sequence[Dynamics]) -> Path:
    """Write the page about measured runs; return its path."""
    finished = [one.success for one in found if one.success is not None]
    verdict = (
        f"{sum(finished)} of {len(finished)} finished runs succeeded: the validation loss of every epoch stayed below"
        " the loss of the untrained model."
    )
    header = ["run", "training", "decay per step", "largest radius of J", "largest gradient norm"]
    numbers = [map(_number, (one.decay_rate, one.largest_radius, one.largest_norm)) for one in found]
    rows = [[one.name, one.verdict, *three] for one, three in zip(found, numbers, strict=True)]
    note = (
        "In the figures of one run the first colour is the spectral radius of J = W/4 + I/2, the second the gradient"
        " norm before clipping. Dots: s with the norm chosen for the step; thin line: with the other norm."
    )
    drawn = [Figure(plot.title, plots.draw(plot)) for plot in figures(found) if not plots.is_empty(plot)]
    return write_page(
        out,
        kind="Dynamics",
        title=", ".join(one.name for one in found),
        verdict=verdict if finished else "No run is finished.",
        sections=[
            Section("Training", tables=[Table("", header, rows)]),
            Section("Figures, after Kanai's thesis, Figs 3.2 to 3.5", [note], legend(one.name for one in found), drawn),
        ],
    )


def _number(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.4g}"


def figures(found: Sequence[Dynamics]) -> list[Plot]:
    """The decay of the state, radius and gradient of each run, and s."""
    decay = [Curve(range(1, len(one.norms) + 1), one.norms, index) for index, one in enumerate(found)]
    rates = "; ".join(f"{one.name}: factor {one.decay_rate:.3g} per step" for one in found)
    drawn = [Plot("decay", "Norm of the state after one random input", rates, "steps", "norm", decay)]
    drawn += [_radius(index, one) for index, one in enumerate(found)]
    counts = [curve for index, one in enumerate(found) for curve in _counts(index, one)]
    drawn.append(Plot("count", "Singular values computed, s", "mean of each epoch", "epochs", "speed", counts))
    return drawn


def _radius(index: int, one: Dynamics) -> Plot:
    """Thesis, Fig. 3.3: the gradient norm scaled so that its largest is 1."""
    steps = [line.step for line in one.lines]
    top = one.largest_norm if one.largest_norm > 0 else 1.0
    radii, norms = [line.spectral_radius for line in one.lines], [line.grad_norm / top for line in one.lines]
    curves = [Curve(steps, radii, 0), Curve(steps, norms, 1)]
    ranges = f"radius up to {one.largest_radius:.3g}; gradient norm before clipping up to {one.largest_norm:.3g}"
    title = f"{one.name}: spectral radius of J, and gradient norm as a share of its largest"
    return Plot(f"radius-{index}", title, ranges, "steps", "speed", curves, levels=[Mark(1.0, "stable below")])


def _counts(index: int, one: Dynamics) -> list[Curve]:
    """Thesis, Figs 3.4 and 3.5: s of all blocks together, dots the norm chosen, thin the other."""
    curves: list[Curve] = []
    for name in ("s", "s_other"):
        by_epoch: dict[int, list[float]] = {}
        for line in one.lines:
            counts = line.s if name == "s" else line.s_other
            if counts:
                by_epoch.setdefault(math.ceil(line.epoch), []).append(sum(counts))
        means = [sum(values) / len(values) for values in by_epoch.values()]
        curves.append(Curve(list(by_epoch), means, index, "checks" if name == "s" else "running"))
    return curves
