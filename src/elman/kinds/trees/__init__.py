"""Trees: sentences with their constituents, labelled and parsed."""

COMMANDS = {
    "Use": {"parse": ("commands:parse", "Write the tree of every sentence with a run on trees.")},
    "analyze": {"phrases": ("commands:phrases", "The phrases of a treebank nearest to a phrase.")},
}
"""By group of `elman --help`, or by family of commands, the functions of the kind's modules that are commands."""
