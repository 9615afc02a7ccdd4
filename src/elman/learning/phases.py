"""A training run is one main phase and, where the recipe asks for it, fine-tuning from its best model."""

from typing import TypeAlias

import msgspec

from elman import config

Averaging: TypeAlias = config.NonMonotone | config.Immediate | config.Exponential | None


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of training with one optimiser.

    Attributes:
        optimiser, schedule, averaging, epochs: as in the recipe.
        max_extra: the cap on random windows.
        stop_interval: stop by the non-monotone rule with this interval; None: never.
        patience: stop after so many validations without a new best; None: never.

    """

    optimiser: config.SGD | config.Adam | config.RMSprop
    schedule: config.Constant | config.Decay | config.Plateau | config.Steps | config.Cosine
    averaging: Averaging
    epochs: int
    max_extra: int | None
    stop_interval: int | None
    patience: int | None


def phases_of(training: config.Training) -> list[Phase]:
    """The phases of a recipe, in order."""
    main = Phase(
        optimiser=training.optimiser,
        schedule=training.schedule,
        averaging=training.averaging,
        epochs=training.epochs,
        max_extra=training.window.max_extra,
        stop_interval=None,
        patience=training.patience,
    )
    if training.fine_tune is None:
        return [main]
    fine = training.fine_tune
    return [
        main,
        Phase(
            optimiser=config.SGD(lr=fine.lr),
            schedule=config.Constant(),
            averaging=config.Immediate(),
            epochs=fine.epochs,
            max_extra=fine.max_extra if fine.max_extra is not None else training.window.max_extra,
            stop_interval=fine.interval,
            patience=None,
        ),
    ]
