"""All claims, in the order of their papers."""

from elman.errors import UserError
from elman.reproduce.claim import Claim
from elman.reproduce.claims.adaptation import DYNAMIC_EVALUATION, NEURAL_CACHE
from elman.reproduce.claims.constraint import GRADIENT_SPIKES, PERPLEXITY_BY_DELTA, STATE_DECAY, SUCCESS
from elman.reproduce.claims.functions import (
    ADAPTIVE_SIGSOFTMAX,
    CHARACTER_BOTTLENECK,
    RELU_FAILS,
    SIGMOID_VOCABULARY,
    SIGSOFTMAX_WORDS,
)
from elman.reproduce.claims.grammar import BLIMP, ELMAN_AGREEMENT, STARTING_SMALL
from elman.reproduce.claims.learning import (
    ECHO_STATE,
    GRADIENT_REGULARISER,
    LSTM_LONG_LAG,
    RTRL_EQUALS_BPTT,
    VANISHING_GRADIENT,
)
from elman.reproduce.claims.mixtures import (
    BALANCE_LOSS,
    DOC_COMPONENTS,
    GRADIENT_SHORTCUT,
    MIXTURE_ACTIVATIONS,
    RANK_BOUND,
)
from elman.reproduce.claims.music import MUSIC_CONSTRAINT, MUSIC_NLL
from elman.reproduce.claims.pairs import HEADLINES, PARSING, REVERSED_SOURCE
from elman.reproduce.claims.projection import MEMORY_NOISE, PROJECTION_COST, PROJECTION_RANK
from elman.reproduce.claims.spelling import CHARACTER_AWARE, CHARACTER_AWARE_TWINS, OPEN_VOCABULARY

CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for claim in (
        SUCCESS,
        PERPLEXITY_BY_DELTA,
        STATE_DECAY,
        GRADIENT_SPIKES,
        PROJECTION_RANK,
        PROJECTION_COST,
        MEMORY_NOISE,
        MUSIC_NLL,
        MUSIC_CONSTRAINT,
        RANK_BOUND,
        SIGSOFTMAX_WORDS,
        CHARACTER_BOTTLENECK,
        SIGMOID_VOCABULARY,
        RELU_FAILS,
        MIXTURE_ACTIVATIONS,
        DOC_COMPONENTS,
        GRADIENT_SHORTCUT,
        BALANCE_LOSS,
        ADAPTIVE_SIGSOFTMAX,
        DYNAMIC_EVALUATION,
        NEURAL_CACHE,
        RTRL_EQUALS_BPTT,
        VANISHING_GRADIENT,
        LSTM_LONG_LAG,
        GRADIENT_REGULARISER,
        ECHO_STATE,
        HEADLINES,
        REVERSED_SOURCE,
        PARSING,
        ELMAN_AGREEMENT,
        STARTING_SMALL,
        BLIMP,
        CHARACTER_AWARE,
        CHARACTER_AWARE_TWINS,
        OPEN_VOCABULARY,
    )
}

RENAMED = {"sigsoftmax-characters": "character-bottleneck"}
"""Names that claims had before."""


def choose(name: str) -> list[Claim]:
    """The claim of a name, or every claim for `all`.

    Raises:
        UserError: there is no such claim.

    """
    if name == "all":
        return list(CLAIMS.values())
    name = RENAMED.get(name, name)
    if name not in CLAIMS:
        raise UserError(
            f"there is no experiment {name}; `elman reproduce list` shows them: {', '.join(CLAIMS)}, or all"
        )
    return [CLAIMS[name]]
