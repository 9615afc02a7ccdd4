"""The registry of claims: a new claim is a value in a module of this folder, and the module one line of `MODULES`."""

from importlib import import_module

from elman.config import plugins
from elman.errors import UserError
from elman.study.claim import Claim

MODULES = (
    "constraint", "projection_cost", "projection_rank", "memory_noise", "music", "output", "mixtures", "wikitext",
    "adaptation", "learning", "long_lags", "bits", "speed", "recurrences", "networks", "counts", "pairs", "grammar",
    "spelling",
)  # fmt: skip
"""In the order in which `elman reproduce list` shows them."""

CLAIMS: dict[str, Claim] = {
    value.name: value
    for module in MODULES
    for value in vars(import_module(f"{__name__}.{module}")).values()
    if isinstance(value, Claim)
} | dict(plugins.added("claims"))


def choose(name: str) -> list[Claim]:
    """The claim called `name`, or every claim for `all`; raises UserError if there is none."""
    if name == "all":
        return list(CLAIMS.values())
    if name not in CLAIMS:
        listed = ", ".join(CLAIMS)
        raise UserError(f"there is no experiment {name}; `elman reproduce list` shows them: {listed}, or all")
    return [CLAIMS[name]]
