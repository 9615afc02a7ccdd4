"""Pairs of a source and a target: translation, headlines, trees as lines."""

COMMANDS = {
    "Use": {"translate": ("commands:translate", "Write the target of every source with a run on pairs.")},
    "Study": {"metrics": ("metrics:metrics", "ROUGE, BLEU and chrF, error rate, or bracket F1 of a system's output.")},
    "analyze": {"attention": ("commands:attention", "The attention of a model of pairs.")},
}
"""By group of `elman --help`, or by family of commands, the functions of the kind's modules that are commands."""
