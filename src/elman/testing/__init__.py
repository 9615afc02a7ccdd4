"""What every part must fulfil, as functions for the tests of plug-ins: one check for each group of parts.

They raise AssertionError with a sentence that names the rule. elman's own parts pass the same checks.

Example:
    >>> from elman.network.cells.gru import GRU
    >>> check_cell(GRU())
"""

from elman.testing.cells import check_activation, check_cell
from elman.testing.learning import check_constraint, check_loss, check_optimiser, check_penalty, check_rule
from elman.testing.modules import check_composition, check_context, check_core, check_encoder, check_output
from elman.testing.runs import check_claim, check_task

__all__ = [
    "check_activation",
    "check_cell",
    "check_claim",
    "check_composition",
    "check_constraint",
    "check_context",
    "check_core",
    "check_encoder",
    "check_loss",
    "check_optimiser",
    "check_output",
    "check_penalty",
    "check_rule",
    "check_task",
]
