"""The registry of claims: a new claim is a module of this folder with its `CLAIMS`, and one line of `MODULES`."""

from importlib import import_module

from elman.errors import UserError
from elman.reproduce.claim import Claim

MODULES = (
    "constraint",
    "projection_cost",
    "memory_noise",
    "music",
    "output",
    "adaptation",
    "learning",
    "long_lags",
    "pairs",
    "grammar",
    "spelling",
)
"""In the order in which `elman reproduce list` shows them."""

CLAIMS: dict[str, Claim] = {
    claim.name: claim for module in MODULES for claim in import_module(f"{__name__}.{module}").CLAIMS
}

RENAMED = {"sigsoftmax-characters": "character-bottleneck"}
"""Former names of claims."""


def choose(name: str) -> list[Claim]:
    """The claim called `name`, or every claim for `all`.

    Raises:
        UserError: there is no such claim.

    """
    if name == "all":
        return list(CLAIMS.values())
    name = RENAMED.get(name, name)
    if name not in CLAIMS:
        raise UserError(
            f"there is no experiment {name}; `elman reproduce list` shows them: {', '.join(CLAIMS)}, or all"
        )
    return [CLAIMS[name]]
