"""Models of characters, which have fewer symbols than dimensions."""

from elman.study.claim import Arm, Claim, Power, Source, rates
from elman.study.comparison import no_difference
from elman.study.measures import BITS

RATES = rates(1.25e-3, 2.5e-3, 5e-3, shortened=("training.epochs=2",))
QUICK = ("data.train_tokens=100000", "training.epochs=3")


def _arm(activation: str) -> Arm:
    settings = (f"model.output.activation={activation}",)
    small = Source("reproduce/small-characters.toml", settings, QUICK, RATES)
    return Arm(activation, small, Source(f"text8/lstm-{activation}.toml"))


CHARACTER_BOTTLENECK = Claim(
    name="character-bottleneck",
    sentence="on characters, fewer symbols than dimensions (M < d), softmax has no bottleneck: sigsoftmax and softmax"
    " do not differ",
    source="Kanai's thesis, Table 4.4", arms=(_arm("softmax"), _arm("sigsoftmax")), measure=BITS,
    comparisons=(no_difference("test bits per character", "sigsoftmax", "softmax", margin=0.01),),
    published={"softmax": "1.56 (text8)", "sigsoftmax": "1.56 (text8)"}, seeds=Power(effect=0.01, deviation=0.005),
    notes="The margin of 1 % was fixed beforehand: the thesis gives two decimals, within which two figures may differ"
    " by .6 %. Small scale: the first million characters of Shakespeare in lower case, contexts of 256 over 54 symbols,"
    " 5 epochs of Adam with the betas of the thesis, and for each arm the best of three rates by validation text. In a"
    " network of 96 units on a fifth of the text sigsoftmax was ahead by 1.5 %, although nothing is narrow there.",
)  # fmt: skip
