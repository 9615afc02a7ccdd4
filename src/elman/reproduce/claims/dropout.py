"""Dropout: on connections between layers, and on those from one step to the next."""

from elman.reproduce.arm import Arm, Source
from elman.reproduce.claim import Claim
from elman.reproduce.comparison import lower
from elman.reproduce.perplexity import PERPLEXITY

RECIPE = "reproduce/small-lstm.toml"
QUICK = ("data.train_tokens=8000",)

NO_FORWARD = "model.encoder.dropout=0", "model.core.between_dropout=0", "model.core.output_dropout=0"
RECURRENT = "model.core.recurrent_dropout=0.3"

NONE, FORWARD, EVERYWHERE = "none", "between layers", "between layers and between steps"


def _arm(label: str, *settings: str) -> Arm:
    return Arm(label, Source(RECIPE, settings, QUICK))


DROPOUT = Claim(
    name="dropout",
    sentence="dropout helps an LSTM on the connections between layers, and harms it on those between steps",
    source="Zaremba, Sutskever & Vinyals 2014, section 3 and Table 1",
    arms=(_arm(NONE, *NO_FORWARD), _arm(FORWARD), _arm(EVERYWHERE, RECURRENT)),
    measure=PERPLEXITY,
    comparisons=(lower("test perplexity", FORWARD, NONE), lower("test perplexity", FORWARD, EVERYWHERE)),
    published={NONE: "114.5 (2 x 200 units)", FORWARD: "82.7 (2 x 650), 78.4 (2 x 1,500)"},
    seeds=4,
    notes="The first 24,000 tokens of Shakespeare, two layers of 100 LSTM units, rate .3 wherever there is dropout, all"
    " masks drawn afresh at every step as in the paper, the best of 12 epochs on validation text: a text so small that"
    " a network without dropout overfits within a few epochs. The paper shows no figure of dropout between steps; it"
    " gives the reason why it leaves it out.",
)
