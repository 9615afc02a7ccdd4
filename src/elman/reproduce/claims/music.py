"""Polyphonic music."""

from elman.reproduce.claim import Arm, Claim, Source
from elman.reproduce.comparison import Bound, lower
from elman.reproduce.measures import NATS

GRU, NADE = "GRU, delta 0.2", "LSTM-NADE"
NADE_RECIPE = "music/nottingham-lstm-nade.toml"
LAB = ("training.epochs=42",)

MUSIC_NLL = Claim(
    name="music-nll",
    sentence="the constrained GRU reaches the published figure on Nottingham; notes that see each other are worth more",
    source="Kanai's thesis, Table 3.5; Boulanger-Lewandowski et al. 2012",
    arms=(
        Arm(
            GRU,
            Source("music/nottingham-gru-constrained.toml", LAB),
            Source("music/nottingham-gru-constrained.toml"),
        ),
        Arm(NADE, Source(NADE_RECIPE, ("training.epochs=12",)), Source(NADE_RECIPE)),
    ),
    measure=NATS,
    comparisons=(Bound("test nll", GRU, 3.6), Bound("test nll", NADE, 2.5), lower("test nll", NADE, GRU)),
    metric="test nll",
    published={GRU: "3.53 ± 0.04", NADE: "2.31 (RNN-NADE)"},
    notes="Nats a step over whole pieces, 93 pitches. The thesis trains until its rate is below 1e-4, the lab for 42"
    " epochs, and 12 of the 30 of LSTM-NADE. The twin with clipping is music/nottingham-gru.toml (published: 3.64 ±"
    " 0.04).",
)
