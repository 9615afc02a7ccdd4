"""From a recipe to an encoder: what turns symbols, words by their spelling, or frames of notes into vectors."""

from collections.abc import Sequence
from typing import assert_never

from elman import config
from elman.encoders.characters import Characters
from elman.encoders.encoder import TokenEncoder
from elman.encoders.frames import Frames
from elman.encoders.lookup import Lookup
from elman.errors import UserError


def build_encoder(
    recipe: config.Lookup | config.Characters | config.Frames,
    num_inputs: int,
    words: Sequence[str] | None = None,
    *,
    locked: bool,
) -> TokenEncoder:
    """From symbols, or frames of notes, to vectors; `words` as in `build_model`.

    Raises:
        UserError: parts that do not fit together.

    """
    match recipe:
        case config.Lookup():
            return Lookup(
                num_inputs,
                recipe.size,
                dropout=recipe.dropout,
                word_dropout=recipe.word_dropout,
                locked=locked,
                scale=recipe.scale,
            )
        case config.Characters():
            if len(recipe.widths) != len(recipe.filters):
                raise UserError(
                    f"model.encoder.filters has {len(recipe.filters)} numbers and model.encoder.widths"
                    f" {len(recipe.widths)}; give one number of filters for each width"
                )
            return Characters(
                [str(number) for number in range(num_inputs)] if words is None else words,
                recipe.size,
                recipe.widths,
                recipe.filters,
                highways=recipe.highways,
                dropout=recipe.dropout,
                locked=locked,
            )
        case config.Frames():
            return Frames(
                num_inputs, recipe.size, dropout=recipe.dropout, locked=locked, scale=recipe.scale, bias=recipe.bias
            )
        case _:
            assert_never(recipe)
