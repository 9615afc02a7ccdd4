"""Sequences given a source: headlines, translation, parsing."""

from elman.reproduce.arm import Arm, Source
from elman.reproduce.claim import Claim, ClaimMeasure
from elman.reproduce.comparison import Bound, higher, lower
from elman.reproduce.perplexity import with_test_text
from elman.reproduce.tokens import BLOCKS


def of_output(name: str, baseline: str, *measures: str) -> ClaimMeasure:
    """Some measures of the output, with the first one's value for the baseline (`baseline`, in words)."""
    metrics = {measure: measure for measure in measures} | {f"{measures[0]}, baseline": f"{measures[0]} of {baseline}"}
    return ClaimMeasure(name, metrics | {"test perplexity": "perplexity, test"}, with_test_text, BLOCKS)


ENCDEC = Arm("EncDec", Source("headlines/small-encdec.toml"), Source("headlines/encdec.toml"))
ENCDEC_MOS = Arm("EncDec + MoS", Source("headlines/small-mos.toml"), Source("headlines/encdec-mos.toml"))
ENCDEC_DOC = Arm("EncDec + DOC", Source("headlines/small-doc.toml"), Source("headlines/encdec-doc.toml"))

HEADLINES = Claim(
    name="headlines",
    sentence="DOC writes better headlines than an attention encoder-decoder, and than one with MoS",
    source="Takase et al. 2018, Table 6",
    arms=(ENCDEC, ENCDEC_MOS, ENCDEC_DOC),
    measure=of_output("headlines", "the first words", "ROUGE-1", "ROUGE-2", "ROUGE-L"),
    comparisons=(
        Bound("ROUGE-1", ENCDEC.label, "ROUGE-1, baseline", exceeds=True),
        *(higher("ROUGE-1", ENCDEC_DOC.label, other.label) for other in (ENCDEC, ENCDEC_MOS)),
    ),
    published={
        ENCDEC.label: "45.92 ± 0.11 (Zhou), 45.86 ± 0.03 (Kiyono)",
        ENCDEC_MOS.label: "46.04 ± 0.24, 46.11 ± 0.19",
        ENCDEC_DOC.label: "46.40 ± 0.24, 46.13 ± 0.09",
    },
    notes="Small scale: about 30,000 pairs, 200 units and one layer instead of 3.8 million pairs and 400 units.",
    data="a file of lines `source TAB headline` (docs/pairs.md)",
)

_AHEAD = ("model.source.bidirectional=false", "model.source.stack.sizes=[256]", "training.epochs=4")

REVERSED_SOURCE = Claim(
    name="reversed-source",
    sentence="a source read in reverse is translated better",
    source="Sutskever, Vinyals & Le 2014, section 3.3; Luong et al. 2015, Table 1",
    arms=(
        Arm("forward", Source("translation/small-ja-en.toml", _AHEAD)),
        Arm("reversed", Source("translation/small-ja-en.toml", (*_AHEAD, "data.reverse_source=true"))),
    ),
    measure=of_output("translation", "the source itself", "BLEU", "chrF"),
    comparisons=(lower("test perplexity", "reversed", "forward"), higher("BLEU", "reversed", "forward")),
    metric="BLEU",
    published={"forward": "25.9 (WMT en-fr); 11.3 (WMT en-de)", "reversed": "30.6; 12.6"},
    notes="The published models have no attention; ours have, which depends less on a good order. Japanese has its verb"
    " last, so a reversed source begins with what comes early in English. One direction of 256 units, four epochs.",
    data="the prefix of parallel files: PREFIX.train.ja, PREFIX.train.en, dev, test (docs/pairs.md)",
)

PARSING = Claim(
    name="parsing",
    sentence="a model with attention learns to parse from a treebank, as translation into linear trees",
    source="Vinyals et al. 2015, Table 1",
    arms=(Arm("attention", Source("parsing/small-trees.toml")),),
    measure=of_output("parsing", "right-branching", "bracket F1", "unlabelled F1", "well-formed"),
    comparisons=tuple(
        Bound(metric, "attention", f"{metric}, baseline", exceeds=True) for metric in ("bracket F1", "unlabelled F1")
    ),
    published={"attention": "88.3 (WSJ, 40,000 trees)"},
    notes="Small scale: about 4,000 trees. The baseline is purely right-branching.",
    data="a bracketed treebank (docs/pairs.md)",
)
