"""Targets given sources: headlines, translation, parsing."""

from elman.reproduce.claim import Arm, Claim, Source
from elman.reproduce.comparison import Bound, higher, lower
from elman.reproduce.measures.runs import of_output

ENCDEC = Arm("EncDec", Source("headlines/lab-encdec.toml"), Source("headlines/encdec.toml"))
ENCDEC_MOS = Arm("EncDec + MoS", Source("headlines/lab-mos.toml"), Source("headlines/encdec-mos.toml"))
ENCDEC_DOC = Arm("EncDec + DOC", Source("headlines/lab-doc.toml"), Source("headlines/encdec-doc.toml"))

HEADLINES = Claim(
    name="headlines",
    sentence="DOC writes better headlines than an attention encoder-decoder, and than one with MoS",
    source="Takase et al. 2018, Table 6",
    arms=(ENCDEC, ENCDEC_MOS, ENCDEC_DOC),
    measure=of_output("headlines", "the first words", "ROUGE-1", "ROUGE-2", "ROUGE-L"),
    comparisons=(
        Bound("ROUGE-1", ENCDEC.label, "ROUGE-1, baseline", exceeds=True),
        higher("ROUGE-1", ENCDEC_DOC.label, ENCDEC.label),
        higher("ROUGE-1", ENCDEC_DOC.label, ENCDEC_MOS.label),
    ),
    metric="ROUGE-1",
    published={
        ENCDEC.label: "45.92 ± 0.11 (Zhou), 45.86 ± 0.03 (Kiyono)",
        ENCDEC_MOS.label: "46.04 ± 0.24, 46.11 ± 0.19",
        ENCDEC_DOC.label: "46.40 ± 0.24, 46.13 ± 0.09",
    },
    notes="Lab: some 30,000 pairs and 200 units instead of 3.8 million and 400; one layer under the attention.",
    data="pairs as lines `source TAB headline` (docs/pairs.md)",
)

_AHEAD = (
    "model.source.bidirectional=false", "model.source.stack.sizes=[256]", "training.epochs=4",
)  # fmt: skip

REVERSED_SOURCE = Claim(
    name="reversed-source",
    sentence="a source that is read backwards is translated better",
    source="Sutskever, Vinyals & Le 2014, section 3.3; Luong et al. 2015, Table 1",
    arms=(
        Arm("forward", Source("translation/lab-ja-en.toml", _AHEAD)),
        Arm("reversed", Source("translation/lab-ja-en.toml", (*_AHEAD, "data.reverse_source=true"))),
    ),
    measure=of_output("translation", "the source itself", "BLEU", "chrF"),
    comparisons=(lower("test perplexity", "reversed", "forward"), higher("BLEU", "reversed", "forward")),
    metric="BLEU",
    published={"forward": "25.9 (WMT en-fr); 11.3 (WMT en-de)", "reversed": "30.6; 12.6"},
    notes="The published models look at no source once they have read it; ours have attention, which needs a good order"
    " less. Japanese has its verb last, so here a reversed source begins with what English says early. One direction of"
    " 256 units, four epochs.",
    data="what the names of parallel files begin with: PREFIX.train.ja, PREFIX.train.en, dev, test (docs/pairs.md)",
)

PARSING = Claim(
    name="parsing",
    sentence="a model with attention learns to parse from a treebank, as translation into linear trees",
    source="Vinyals et al. 2015, Table 1",
    arms=(Arm("attention", Source("parsing/lab-trees.toml")),),
    measure=of_output("parsing", "right-branching", "bracket F1", "unlabelled F1", "well-formed"),
    comparisons=(
        Bound("bracket F1", "attention", "bracket F1, baseline", exceeds=True),
        Bound("unlabelled F1", "attention", "unlabelled F1, baseline", exceeds=True),
    ),
    metric="bracket F1",
    published={"attention": "88.3 (WSJ, 40,000 trees)"},
    notes="Some 4,000 trees at the lab. The baseline branches to the right alone.",
    data="a treebank in brackets (docs/pairs.md)",
)
