"""RTRL: seconds per step against the number of units n, beside the n^4 of its products."""

import json
import math

from elman import config
from elman.learning.rtrl import cost
from elman.study.claims.learning import seconds_per_step, symbol_model
from timing import arguments

CELLS = {"elman": config.Elman(), "lstm": config.LSTM(), "gru": config.GRU()}
SIZES = {"elman": (16, 32, 64, 128, 256), "lstm": (16, 32, 64, 96, 128), "gru": (16, 32, 64, 128)}


def main() -> None:
    options = arguments(__doc__, tuple(CELLS))
    for name in options.parts:
        before = None
        for units in SIZES[name]:
            seconds = seconds_per_step(CELLS[name], units, options.repetitions)
            needed = cost(symbol_model(CELLS[name], units), 1)
            facts = {"cell": name, "units": units, "ms": 1e3 * seconds, "multiply_adds": needed.multiply_adds}
            if before:
                ratio = math.log(units / before["units"])
                facts["exponent"] = math.log(facts["ms"] / before["ms"]) / ratio
                facts["exponent of multiply-adds"] = math.log(needed.multiply_adds / before["multiply_adds"]) / ratio
            print(json.dumps(facts))
            before = facts


if __name__ == "__main__":
    main()
