"""Tags: sentences whose words have tags."""

COMMANDS = {"tag": "Write the tag of every word with a run on tags."}
"""The functions of the module `commands` that are commands of elman, and their lines in `elman --help`."""
