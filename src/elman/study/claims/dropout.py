"""Dropout: on connections between layers, and on those from one step to the next."""

from elman.study.claim import Arm, Claim, Grid, Source, rates
from elman.study.comparison import lower
from elman.study.measures import PERPLEXITY

RECIPE = "reproduce/small-lstm.toml"
QUICK = ("data.train_tokens=8000",)
SIZES = "model.encoder.size=200", "model.core.sizes=[200, 200]", "training.optimiser.lr=2e-3"
LONGER = ("data.train_tokens=60000", *SIZES)

FORWARD_KEYS = "model.encoder.dropout", "model.core.between_dropout", "model.core.output_dropout"
RECURRENT_KEY = "model.core.recurrent_dropout"

NONE, FORWARD, EVERYWHERE = "none", "between layers", "between layers and between steps"


def _rates(*keys: str) -> Grid:
    """The same rate for all keys, one of three."""
    return rates(0.3, 0.5, 0.65, of=keys, shortened=("training.epochs=8",))


def _arm(label: str, grid: Grid | None, *settings: str) -> Arm:
    return Arm(label, Source(RECIPE, (*LONGER, *settings), QUICK, grid))


DROPOUT = Claim(
    name="dropout",
    sentence="dropout helps an LSTM on the connections between layers, and harms it on those between steps",
    source="Zaremba, Sutskever & Vinyals 2014, section 3 and Table 1",
    arms=(
        _arm(NONE, None, *(f"{key}=0" for key in FORWARD_KEYS)), _arm(FORWARD, _rates(*FORWARD_KEYS)),
        _arm(EVERYWHERE, _rates(*FORWARD_KEYS, RECURRENT_KEY)),
    ),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", FORWARD, NONE), lower("test perplexity", FORWARD, EVERYWHERE)),
    published={NONE: "114.5 (2 x 200 units)", FORWARD: "82.7 (2 x 650), 78.4 (2 x 1,500)"}, seeds=4,
    notes="The first 60,000 tokens of Shakespeare, two layers of 200 LSTM units, the best of the rates .3, .5, .65 for"
    " each arm, wherever it has dropout, by validation loss; all masks drawn afresh at every step as in the paper, the"
    " best of 12 epochs on validation text: a text so small that a network without dropout overfits within a few"
    " epochs. The paper shows no figure of dropout between steps; it gives the reason why it leaves it out.",
)  # fmt: skip
