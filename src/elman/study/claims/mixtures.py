"""Mixtures of output distributions: how many components, of which layers, and how evenly they are used."""

import statistics
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from elman.analysis.mixture import read_mixture
from elman.config.text import TextData
from elman.config.toml import find, load_recipe
from elman.data.batches import Batch
from elman.data.text.corpus import open_corpus
from elman.data.windows import TrainingWindows
from elman.learning.bptt import bptt
from elman.learning.update import build_update
from elman.network.build import build_model
from elman.network.cores.stack import StackCore
from elman.network.model import LanguageModel
from elman.objective.loss import Objective
from elman.study.claim import Arm, Claim, ClaimMeasure, Computation, CurveAxes, Measurement
from elman.study.claims.output import DOC, MIXTURES, SHORT, SINGLE, SINGLES, WORDS, heads
from elman.study.comparison import Steadier, lower, no_higher, times
from elman.study.measures import METRIC as TEST
from elman.study.measures import PERPLEXITY
from elman.study.runs import results_by_split
from elman.tasks.text.run import TextRun


@dataclass(frozen=True)
class LayerGradients:
    """The norm of the loss's gradient at the lowest layer over that at the top, early in training.

    A recipe with the settings `heads` and `settings` is trained for `steps` steps on the beginning of its text. Before
    the first and after every `every` steps the gradients are taken over the first `windows` windows together, without
    dropout; the mean is geometric.
    """

    heads: str
    recipe: str = "reproduce/small-words.toml"
    settings: tuple[str, ...] = ("model.core.sizes=[100, 100, 100, 100]", "data.train_tokens=150000")
    steps: int = 200
    every: int = 20
    windows: int = 5

    def __call__(self, seed: int, data: str | None) -> Measurement:
        recipe = load_recipe(find(self.recipe), [*self.settings, self.heads, f"seed={seed}"])
        assert isinstance(recipe.data, TextData)
        corpus = open_corpus(data or str(recipe.data.corpus), recipe.data.options)
        torch.manual_seed(seed)
        model, training = build_model(recipe.model, len(corpus.vocabulary)), recipe.training
        windows = TrainingWindows(corpus.split("train").tokens, training.batch_size, training.window.length)
        batches = [windows.batch(span) for span in islice(windows.spans(0), self.steps + self.windows)]
        update = build_update(recipe, model)
        found = [layer_norms(model, batches[: self.windows])]
        for step, batch in enumerate(batches[: self.steps], start=1):
            update(batch, training.optimiser.lr)
            if step % self.every == 0:
                found.append(layer_norms(model, batches[: self.windows]))
        ratios = [norms[0] / norms[-1] for norms in found]
        figures = {"beginning": ratios[0], "mean": statistics.geometric_mean(ratios)}
        return Measurement(figures, {"lowest / top": ratios, "gradient norm": found[0]})


def layer_norms(model: LanguageModel, batches: list[Batch]) -> list[float]:
    """Norm of the gradient of the mean loss over consecutive batches, layer by layer, without dropout."""
    core = model.core
    assert isinstance(core, StackCore), "layers belong to a stack"
    model.eval()
    model.zero_grad()
    state = model.begin(batches[0].inputs.shape[1])
    for batch in batches:
        _, state = bptt(model, Objective(), batch, state)
    norms = []
    for layer in core.layers:
        parts = [parameter.grad.norm() for parameter in layer.parameters() if parameter.grad is not None]
        norms.append(torch.stack(parts).norm().item())
    model.zero_grad()
    return norms


def components(label: str, paper: str, *counts: tuple[int, int], more: tuple[str, ...] = ()) -> Arm:
    """A mixture with components by level, about a third as many at small scale as in the paper."""
    return WORDS.arm(label, heads(*counts), *more, paper=f"ptb/{paper}.toml")


SOFTMAX, MOS = SINGLES["softmax"], MIXTURES["MoS"]
_WIDE = SINGLE[0], "model.core.sizes=[220, 220, 90]", "model.encoder.size=90"
WIDER = WORDS.arm("softmax, as long a step", *_WIDE, paper="ptb/awd-lstm-softmax.toml")
DOC_SHALLOW = components("DOC, 2 of the vector", "awd-lstm-doc-15-0-0-5", (3, 4), (0, 2))
DOC_LOWEST = components("DOC, 2 of layer 1", "awd-lstm-doc-15-0-5-0", (3, 4), (1, 2))
DOC_BALANCED = components("DOC, balanced", "awd-lstm-doc", (3, 4), (2, 2), more=("training.penalties.balance=0.003",))

EQUAL = "Weights at small scale: softmax 549,712, mixtures 547,000 to 551,800, so that none has more than another."

DOC_COMPONENTS = Claim(
    name="doc-components",
    sentence="at equal weights DOC has a lower perplexity than MoS with as many components, and MoS than softmax",
    source="Takase et al. 2018, Table 3", arms=(SOFTMAX, MOS, DOC), measure=PERPLEXITY,
    comparisons=(lower(TEST, DOC.label, MOS.label), lower(TEST, MOS.label, SOFTMAX.label)),
    published={SOFTMAX.label: "57.3 (AWD-LSTM)", MOS.label: "54.44", DOC.label: "53.15"}, seeds=5, notes=EQUAL,
)  # fmt: skip

MIXTURE_OR_WIDTH = Claim(
    name="mixture-or-width",
    sentence="DOC and MoS have a lower perplexity than a softmax made so wide that its step takes as long",
    source="Takase et al. 2018, Table 3, asked for equal time", arms=(WIDER, MOS, DOC), measure=PERPLEXITY,
    comparisons=tuple(lower(TEST, arm.label, WIDER.label) for arm in (DOC, MOS)),
    published={MOS.label: "54.44", DOC.label: "53.15"}, seeds=5,
    notes="No paper asks this; whoever trains does. The wide softmax has 957,840 weights, 1.75 times as many.",
)  # fmt: skip

_LONGER = WORDS._replace(settings=(*SHORT, "training.epochs=24", "training.fine_tune.epochs=8"))
_6, _15, _20 = (
    _LONGER.arm(f"MoS, {count} components", heads((3, count)), paper=paper and f"ptb/{paper}.toml")
    for count, paper in ((6, None), (15, "awd-lstm-mos"), (20, "awd-lstm-mos-20"))
)

MOS_COMPONENTS = Claim(
    name="mos-components", sentence="more components than 15 do not help MoS", source="Takase et al. 2018, Table 3",
    arms=(_6, _15, _20), measure=PERPLEXITY, comparisons=(no_higher(TEST, _15.label, _20.label, margin=0.005),),
    published={_15.label: "54.44", _20.label: "54.79"}, seeds=5,
    notes="No help means less than half a per cent. Small scale: 60,000 tokens, 32 epochs, and 6 components beside"
    " them. At first 4 were judged against 6, where more help (5.8 %, 3 seeds, p = .044).",
)  # fmt: skip

DOC_LAYERS = Claim(
    name="doc-layers", sentence="components of the layer below the last help DOC most, those of the word vector least",
    source="Takase et al. 2018, Table 3", arms=(DOC, DOC_LOWEST, DOC_SHALLOW), measure=PERPLEXITY,
    comparisons=(
        lower(TEST, DOC.label, DOC_SHALLOW.label), lower(TEST, DOC.label, DOC_LOWEST.label),
        lower(TEST, DOC_LOWEST.label, DOC_SHALLOW.label),
    ),
    published={DOC.label: "53.15", DOC_LOWEST.label: "53.52", DOC_SHALLOW.label: "54.28"},
    notes="4 components of the last layer and 2 of another one at small scale, 15 and 5 at paper scale.",
)  # fmt: skip

DOC_THREE_LAYERS = Claim(
    name="doc-three-layers", sentence="components of three layers help DOC less than those of the last two",
    source="Takase et al. 2018, Table 3",
    arms=(
        DOC, components("DOC, 3 + 2 + 1", "awd-lstm-doc-10-5-5-0", (3, 3), (2, 2), (1, 1)),
        components("DOC, 3 + 2 + 0 + 1", "awd-lstm-doc-10-5-0-5", (3, 3), (2, 2), (0, 1)),
    ),
    measure=PERPLEXITY,
    comparisons=tuple(lower(TEST, DOC.label, other) for other in ("DOC, 3 + 2 + 1", "DOC, 3 + 2 + 0 + 1")),
    published={DOC.label: "53.15", "DOC, 3 + 2 + 1": "54.37", "DOC, 3 + 2 + 0 + 1": "54.18"},
    notes="The paper: 10, 5 and 5 components.",
)  # fmt: skip

MIXTURE_ACTIVATIONS = Claim(
    name="mixture-activations",
    sentence="MoSS is as good as MoS or better; mixtures of ReLU, sigmoid and softplus are worse than MoS",
    source="Kanai's thesis, Tables 4.1 and 4.2", arms=tuple(MIXTURES.values()), measure=PERPLEXITY,
    comparisons=(
        no_higher(TEST, "MoSS", "MoS", margin=0.01), *(lower(TEST, "MoS", worse) for worse in ("MoR", "MoSig", "MoSp")),
    ),
    published={
        "MoS": "54.7 ± 0.08", "MoSS": "54.6 ± 0.2", "MoR": "66.2 ± 0.4", "MoSig": "60.3 ± 0.3", "MoSp": "59.4 ± 0.2",
    },
    notes="Six components at small scale, fifteen at paper scale; as good means at most 1 % higher.",
)  # fmt: skip

DOC_SPREAD = Claim(
    name="doc-spread", sentence="the perplexity of DOC varies less from seed to seed than that of MoS",
    source="Takase et al. 2018, Table 6 (of headlines, by ROUGE)",
    arms=tuple(Arm(arm.label, arm.at("quick"), arm.paper) for arm in (MOS, DOC)), measure=PERPLEXITY,
    comparisons=(Steadier(TEST, DOC.label, MOS.label),), seeds=25,
    notes="A variance needs many seeds: with 25 a ratio of 1.8 between the standard deviations is detected with a power"
    " of 80 %. So each run is as with --quick: 60,000 tokens, 800 words, 8 epochs.",
)  # fmt: skip


def evenness(folder: Path, tokens: int) -> Measurement:
    """How evenly the components are used on the beginning of the test text, and the test perplexity.

    The coefficient of variation of the components' weights (0: all equal), the weight of those that are not of the last
    layer, and the weight that they would have if all components had the same.
    """
    run = TextRun(folder)
    reading = read_mixture(run.model, np.asarray(run.corpus().split("test").tokens[:tokens]), run.first, top=1)
    shares = {level: float(weights.mean()) for level, weights in reading.by_level.items()}
    top = max(shares)
    even = 1 - reading.levels.count(top) / len(reading.levels)
    perplexity = results_by_split(folder)["test"].perplexity
    figures = {"variation": reading.variation, "lower layers": 1 - shares[top], "even share": even, TEST: perplexity}
    return Measurement(figures, {"weight": [shares[level] for level in sorted(shares)]})


EVENNESS = ClaimMeasure(
    "evenness",
    {
        "variation": "coefficient of variation of the weights",
        "lower layers": "weight of the components of lower layers", "even share": "the same if all were equal",
        TEST: "perplexity, test",
    },
    evenness, {"tokens": 10_000}, minutes=0.2,
)  # fmt: skip

LOWER_LAYERS_DOMINATE = Claim(
    name="lower-layers-dominate",
    sentence="without the balance penalty the components of lower layers carry more than their share",
    source="Takase et al. 2018, section 4.2", arms=(DOC,), measure=EVENNESS,
    comparisons=(times("lower layers", DOC.label, DOC.label, 1.0, b_metric="even share"),),
    notes="With equal weights the share is 2 of 6 components.",
)  # fmt: skip

BALANCE_WEIGHTS = Claim(
    name="balance-weights", sentence="the balance penalty evens out the weights of DOC's components",
    source="Takase et al. 2018, section 4.2, eqs 12 and 13", arms=(DOC, DOC_BALANCED), measure=EVENNESS,
    comparisons=(lower("variation", DOC_BALANCED.label, DOC.label),), seeds=5,
    notes="The weight of the penalty is .003, for 6 components, .001 in the paper, for 20: the squared variation of the"
    " components' weights can be three times as large with 20.",
)  # fmt: skip

BALANCE_LOSS = Claim(
    name="balance-loss", sentence="the balance penalty lowers the perplexity of DOC",
    source="Takase et al. 2018, Table 3", arms=(DOC, DOC_BALANCED), measure=PERPLEXITY,
    comparisons=(lower(TEST, DOC_BALANCED.label, DOC.label),),
    published={DOC.label: "53.15", DOC_BALANCED.label: "52.87"}, seeds=5,
    notes="The published gain is .5 %. balance-weights judges what the penalty is for.",
)  # fmt: skip

GRADIENT_SHORTCUT = Claim(
    name="gradient-shortcut",
    sentence="DOC's components on lower layers are a short-cut for the gradient: more of it reaches them than in MoS",
    source="Takase et al. 2018, section 3",
    arms=(
        Arm("MoS", Computation(LayerGradients(heads((4, 6))), 0.4)),
        Arm("DOC", Computation(LayerGradients(heads((4, 4), (3, 2))), 0.4)),
    ),
    measure=ClaimMeasure(
        "gradients",
        {
            "beginning": "gradient norm, lowest layer / top, before training",
            "mean": "geometric mean of it over 200 steps",
        },
        curve=CurveAxes("lowest / top", "measurements, 20 steps apart", relative=False),
    ),
    comparisons=tuple(times(metric, "DOC", "MoS", 1.0) for metric in ("beginning", "mean")), seeds=16,
    notes="The paper expects this without a measurement; here: four layers of 100 units, 6 components, gradient norms"
    " on the same windows over the first 200 steps; near a minimum gradients are noise.",
)  # fmt: skip
