"""--temperature: the probabilities of a network, flattened or sharpened, as evaluate and score use them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from elman.cli import progress
from elman.cli.options import group, parse_number
from elman.errors import UserError, notice

if TYPE_CHECKING:
    from cyclopts import Token

    from elman.tasks.run import Run
    from elman.tasks.text.run import TextRun

TUNE = "tune"


def _convert(_: Any, tokens: "Sequence[Token]") -> Any:
    text = tokens[-1].value
    if text == TUNE:
        return text
    from elman.evaluation.temperature import GREATEST, LEAST

    value = parse_number(float, text)
    if not LEAST <= value <= GREATEST:
        raise ValueError(f"it must be {LEAST:g} to {GREATEST:g}, or {TUNE}")
    return value


@group("Text", 3)
class TemperatureOptions:
    """The temperature of a network.

    Attributes:
        temperature: T: take probabilities in proportion to their power 1/T, so that they are flatter above 1. tune:
            the T that is best on the valid split, printed on standard error.
    """

    temperature: Annotated[float | str | None, Parameter(metavar="T|tune", converter=_convert)] = None

    def join(self, run: "Run", split: str | None = None, *, own: bool = True) -> dict[str, Any]:
        """Give a run the temperature, and return the fields of its results that state it.

        `split` of the run's own data, or where it is not `own` of others, is what the run is evaluated on.
        """
        if self.temperature is None:
            return {}
        from elman.tasks.text.run import TextRun

        if not isinstance(run, TextRun):
            raise UserError(f"--temperature does not belong to a run on {run.kind}; leave it out")
        if isinstance(self.temperature, float):
            run.model.output.temperature = self.temperature
        else:
            if split == "valid" and own:
                notice("the temperature is tuned on the split that is evaluated; --split test is held out")
            run.model.output.temperature = _tuned(run)
        return {"settings": {"temperature": run.model.output.temperature}}


def _tuned(run: "TextRun") -> float:
    from elman.evaluation.perplexity import reading
    from elman.evaluation.temperature import GREATEST, LEAST, best_temperature
    from elman.network.output.layer import BLOCK

    valid, rules = run.split(run.corpus(), "valid"), run.data.evaluation.for_choosing
    short = msgspec.structs.replace(rules, length=max(1, BLOCK // rules.streams))  # all distributions are in memory
    model, windows = reading(run.model, valid, run.first, short)
    with progress.counting(f"temperature of {run.path}") as advance:
        found = round(best_temperature(model, windows, advance), 4)
    counted = len(valid.counted(skip_first=rules.skip_first).tokens)
    border = " (the border of what is considered)" if found in (LEAST, GREATEST) else ""
    notice(f"temperature of {run.path}: {found:g}{border}, tuned on {counted:,} tokens of valid")
    return found
