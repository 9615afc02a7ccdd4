"""elman analyze stability and dynamics: what is proved of a model's states, and what they did in training."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from elman.cli import show
from elman.cli.groups import Common
from elman.cli.options import DataSource, Natural, OutFile, Positive, RunFolders, number
from elman.errors import UserError

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch


def stability(
    run: Path,
    /,
    *,
    data: DataSource = None,
    split: str = "valid",
    steps: Natural = 300,
    streams: Positive = 8,
    common: Common = Common(),
) -> None:
    """Certificates of stability: what is proved of this model, and what is not.

    Tiers 0 to 3: h = 0 without biases, the actual fixed point, all states and all words, and the largest Lyapunov
    exponent on a text. Each states what it proves and what it does not (docs/stability.md).

    Args:
        run: a run on text or music
        data: text or music for tier 3 (default: the data of the run)
        split: train, valid or test
        steps: steps of tier 3; 0 leaves it out
        streams: columns read side by side
    """
    from elman.analysis.stability import certify, certify_music
    from elman.tasks.open import open_run

    device = common.use()
    loaded = open_run(run, device)
    if loaded.kind not in ("text", "music"):
        raise UserError(f"{run} is a run on {loaded.kind}; certificates of stability are for runs on text or music")
    read = loaded.corpus(data).split(split) if steps else None
    if loaded.kind == "music":
        frames = _columns(None if read is None else read.frames, steps, streams, device)
        found = certify_music(loaded.model, len(loaded.inputs), frames)
    else:
        tokens = _columns(None if read is None else read.tokens, steps, streams, device)
        found = certify(loaded.model, len(loaded.inputs), tokens)
    lines = [{**msgspec.to_builtins(line), "holds": line.holds} for line in found]
    rows = []
    for line in found:
        place = [str(line.tier), str(line.layer or "all")]
        rows.append([*place, line.name, f"{line.value:.4g}", f"< {line.limit:g}", "yes" if line.holds else "no"])
    header = ["tier", "layer", "quantity", "value", "needs", "holds"]
    first = {line.tier: line for line in reversed(found)}
    notes = [
        f"tier {tier} where it holds: {line.proves}.\n  not proved: {line.does_not}."
        for tier, line in sorted(first.items())
    ]
    facts = {"run": str(run), "certificates": lines}
    show.print_result(common.as_json, facts, (f"{loaded.recipe.title}: stability", header, rows), notes=notes)


def _columns(
    symbols: "npt.NDArray[Any] | None", steps: int, streams: int, device: "torch.device"
) -> "torch.Tensor | None":
    """The first symbols [T, B, ...] for tier 3, or None; raises UserError where they are too few."""
    import torch

    if symbols is None:
        return None
    length = min(steps, len(symbols) // streams)
    if length < 60:
        raise UserError(
            f"tier 3 has {length} steps in {streams} streams and needs 60 or more: give longer --data, fewer --streams,"
            " or --steps 0 to leave it out"
        )
    read = torch.as_tensor(symbols[: length * streams].astype("int64"), device=device)
    return read.view(streams, length, *read.shape[1:]).transpose(0, 1)


def dynamics(
    runs: RunFolders,
    /,
    *,
    trials: Positive = 50,
    steps: Annotated[int, number(int, Meta(ge=2))] = 100,
    kick: Annotated[float, number(float, Meta(ge=1e-6))] = 0.1,
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """State decay after a kick, spectral radius and gradients in training, success over runs.

    The decay of the state after one random input, the spectral radius of J beside the gradient norm, the number of
    singular values computed, and whether training succeeded (Kanai's thesis, Figs 3.2 to 3.5, Tables 3.2 and 3.3).
    Writes a page with plots.

    Args:
        trials: kicks
        steps: steps after a kick
        kick: standard deviation of a kick
        out: the page (default: RUN/dynamics.html of the first run)
    """
    from elman.analysis.dynamics import summary, write_dynamics

    page, found = write_dynamics(list(runs), out, common.use(), trials=trials, steps=steps, kick=kick)
    rows = [
        [one.name, *(f"{value:.4g}" for value in (one.decay_rate, one.largest_radius, one.largest_norm)), one.verdict]
        for one in found
    ]
    header = ["run", "rate of decay per step", "largest radius of J", "largest gradient norm", "training"]
    facts = {"page": str(page), "runs": [summary(one) for one in found]}
    show.print_result(common.as_json, facts, ("Dynamics", header, rows), notes=[f"page: {page}"])
