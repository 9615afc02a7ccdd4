"""The options of commands that run many jobs: where, and how many at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from elman.cli.options import Natural, Positive, group
from elman.errors import UserError
from elman.jobs.launching import PACKAGES, Launch, package_of

Pairs = Annotated[tuple[str, ...], Parameter(metavar="KEY=VALUE")]


@group("Many runs", 3)
class LaunchOptions:
    """Where jobs run, each a process of its own.

    Attributes:
        launcher: local (processes of this machine), slurm (jobs of a Slurm cluster, by submitit) or ray (tasks of Ray).
        jobs: jobs in parallel (default: 1; with slurm and ray up to 100 are queued).
        retries: how often a job that failed is started again.
        slurm: an option of Slurm, such as partition=gpu, time=240 (minutes), memory=16GB, gpus=1, cpus=4; may be
            repeated.
        ray: an option of Ray, such as num_cpus=2, num_gpus=0.5, or address=auto for a running cluster; may be repeated.
    """

    launcher: Literal["local", "slurm", "ray"] = "local"
    jobs: Positive | None = None
    retries: Natural = 1
    slurm: Pairs = ()
    ray: Pairs = ()

    def launch(self, folder: Path, device: str = "cpu") -> Launch:
        """How jobs are launched that use a device (--device).

        Raises UserError where options do not fit together, or the package of the launcher is missing.
        """
        from elman.network.device import uses_cuda, visible_gpus

        for name, pairs in (("slurm", self.slurm), ("ray", self.ray)):
            if pairs and name != self.launcher:
                raise UserError(f"--{name} belongs to --launcher {name}; add it")
        given = {"slurm": self.slurm, "ray": self.ray, "local": ()}[self.launcher]
        gpus = visible_gpus() if self.launcher == "local" and device in {"auto", "cuda"} else ()
        shared = self.launcher == "local" and (self.jobs or 1) > max(1, len(gpus)) and uses_cuda(device)
        options = _options(self.launcher, given)
        if self.launcher in PACKAGES:
            package_of(self.launcher)  # which may be missing
        return Launch(self.launcher, self.jobs, self.retries, options, folder, gpus, shared)


def _options(name: str, pairs: Sequence[str]) -> dict[str, str]:
    found = dict[str, str]()
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise UserError(f"--{name} {pair}: write KEY=VALUE, such as partition=gpu or num_cpus=2")
        found[key] = value
    return found
