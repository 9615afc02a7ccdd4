"""A recipe for a series of the user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elman.data.kinds import Look
from elman.tasks.proposal.proposal import Proposal, changed

USUAL = 10_000, 60  # steps of the series that the recipe is for, and epochs that are enough for it
SHORT = 1000
"""Rows below which the network is small: the recipe's own learns a short series by heart, and is too sure of itself."""

SMALL = {
    "model.core.sizes": [32],
    "model.core.output_dropout": 0.3,
    "model.encoder.size": 16,
    "training.averaging": '{kind="exponential",decay=0.99}',
}
"""By 13 series of 150 to 690 rows: test NLL .1 nats lower per step, one-step errors as before.

Averaged weights, by five series of 80 to 586 rows: from .13 nats lower to .03 higher, one-step errors as before.
"""


def proposals(found: Look, path: Path) -> list[Proposal]:  # noqa: ARG001 - all numeric columns
    """One for all numeric columns; where values are missing, with their rows read as the value predicted for them."""
    plain = Proposal("series/table.toml", (), ("a series: all columns of numbers are predicted",))
    masked = "values are missing: they count nowhere, and a prediction is read in their place (--missing mask)"
    return [plain, plain.adding(["data.missing=mask"], masked)]


def fitted(proposal: Proposal, facts: Mapping[str, Any]) -> Proposal:
    """The proposal with columns, windows and, for a short series, a network that suit the number of training rows."""
    rows = int(facts["tokens"])
    columns = 8 if rows >= 4000 else 4 if rows >= 1000 else 2
    length = max(1, min(50, rows // (4 * columns)))
    values = {"training.batch_size": columns, "training.window.length": length}
    reason = f"{rows:,} training rows: read in {columns} parts side by side, in windows of {length} steps"
    proposal = proposal.adding(changed(proposal.recipe, values)).because(reason, *values)
    if rows >= SHORT:
        return proposal
    reason = "a short series: half as many units, more dropout, averaged weights"
    return proposal.adding(changed(proposal.recipe, SMALL)).because(reason, *SMALL)
