"""Series: real values, one row per step."""

COMMANDS = {"Use": {"forecast": ("commands:forecast", "Continue a series of values with a run on series.")}}
"""By group of `elman --help`, or by family of commands, the functions of the kind's modules that are commands."""

OPTIONS = {
    "missing": (
        "data.missing=interpolate previous drop mask",
        "of series, the same as --set data.missing=RULE: interpolate, previous, drop or mask missing values",
    )
}
"""Options of `elman train`: the key of a recipe and its values (none: true), and the help."""
