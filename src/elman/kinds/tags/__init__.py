"""Tags: sentences whose words have tags."""

COMMANDS = {"Use": {"tag": ("commands:tag", "Write the tag of every word with a run on tags.")}}
"""By group of `elman --help`, or by family of commands, the functions of the kind's modules that are commands."""
