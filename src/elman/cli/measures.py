"""Measures of output as tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elman.cli import show

if TYPE_CHECKING:
    from elman.evaluation.statistics import Difference


def print_measures(title: str, systems: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """The figures of systems by name, each with its interval, and how they were computed."""
    columns = list(systems.values())
    rows = [
        [row[0]["name"], *(f"{one['value']:.2f} ({one['low']:.2f} to {one['high']:.2f})" for one in row)]
        for row in zip(*columns, strict=True)
    ]
    show.print_table(title, ["measure", *(f"{name} (95 %)" for name in systems)], rows)
    for signature in dict.fromkeys(one["signature"] for one in columns[0]):
        print(signature)


def print_worth(title: str, worth: dict[str, Any]) -> None:
    """What the output of a model of pairs is worth, beside the baseline (`elman.evaluation.targets`)."""
    copied = ", unknown words copied" if worth["copy_unknown"] else ""
    kept = {None: "", True: ", constrained", False: ", unconstrained"}[worth.get("constrained")]
    systems = {f"beam {worth['beam']}{copied}{kept}": worth["measures"], worth["baseline_name"]: worth["baseline"]}
    print_measures(title, systems)


def print_differences(title: str, compared: Sequence["Difference"]) -> None:
    """Two systems on the same lines."""
    rows = [
        [one.name, f"{one.difference:+.2f}", f"{one.low:+.2f} to {one.high:+.2f}", f"{one.p_value:.3g}"]
        for one in compared
    ]
    show.print_table(title, ["measure", "difference", "95 % interval", "p-value"], rows)
