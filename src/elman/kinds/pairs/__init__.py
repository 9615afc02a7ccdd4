"""Pairs of a source and a target: translation, headlines, trees as lines."""

COMMANDS = {"translate": "Write the target of every source with a run on pairs."}
"""The functions of the module `commands` that are commands of elman, and their lines in `elman --help`."""
