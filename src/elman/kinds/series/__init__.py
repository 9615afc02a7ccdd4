"""Series: real values, one row per step."""

COMMANDS = {"forecast": "Continue a series of values with a run on series."}
"""The functions of the module `commands` that are commands of elman, and their lines in `elman --help`."""
