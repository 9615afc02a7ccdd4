"""Trees: sentences with their constituents, labelled and parsed."""

COMMANDS = {"parse": "Write the tree of every sentence with a run on trees."}
"""The functions of the module `commands` that are commands of elman, and their lines in `elman --help`."""
