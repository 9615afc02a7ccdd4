"""The runs that are served, by their names."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import msgspec
import torch

from elman.errors import UserError, did_you_mean
from elman.serve import answers
from elman.serve.limits import Limits
from elman.serve.service import Service
from elman.serve.text import TextService
from elman.tasks.open import open_run
from elman.tasks.run import Run

Services = dict[str, Service[Any]]  # by name, in the order in which they were given


def open_services(folders: Sequence[Path], device: torch.device, limits: Limits) -> Services:
    """Open runs with their models; raises UserError where one cannot be served."""
    return serve_runs([open_run(folder, device) for folder in folders], limits)


def serve_runs(runs: Iterable[Run], limits: Limits) -> Services:
    """The services of runs; raises UserError where one cannot be served."""
    found: Services = {}
    for run in runs:
        own = run.path.resolve().name
        numbered = (f"{own}-{number}" for number in range(2, len(found) + 2))
        name = next(one for one in (own, *numbered) if one not in found)
        found[name] = serve_run(name, run, limits)
    return found


def listed(services: Services) -> list[answers.RunFacts]:
    """What the page must know of the runs, with `compare` among the panels where there are two on text."""
    found = [service.facts() for service in services.values()]
    if sum(one.kind == "text" for one in found) < 2:
        return found
    return [
        msgspec.structs.replace(one, panels=[*one.panels, "compare"]) if one.kind == "text" else one for one in found
    ]


def serve_run(name: str, run: Run, limits: Limits) -> Service[Any]:
    """The service of a run; raises UserError where there is none for its kind of data."""
    if run.service is None:
        raise UserError(f"{run.path} is a run on {run.kind}; runs on text, music and pairs can be served")
    service: Service[Any] = resolve_name(run.service)(name, run, limits)
    return service


def find(services: Services, name: str) -> Service[Any]:
    """The service of a name, or the first for an empty one; raises UserError where there is none."""
    if not name:
        return next(iter(services.values()))
    if name not in services:
        raise UserError(f"there is no run {name!r} here; there are {', '.join(services)}{did_you_mean(name, services)}")
    return services[name]


def find_text(services: Services, name: str) -> TextService:
    """The service of a run on text by name, or the first; raises UserError where there is none."""
    service = find(services, name)
    if not isinstance(service, TextService):
        raise UserError(f"{service.name} is a run on {service.kind}; two runs on text can be compared")
    return service
