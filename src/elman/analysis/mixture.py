"""The components of a mixture over a text: their weights, what each predicts, how evenly they are used.

T positions, K components, V words.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from elman.analysis.rank import num_words
from elman.data.text.vocabulary import Vocabulary
from elman.data.windows import EvaluationWindows
from elman.drawing.page import Figure, Section, Table, part_of, write_page
from elman.drawing.style import canvas, colour, label, legend, svg
from elman.errors import UserError
from elman.evaluation.perplexity import traces
from elman.network.cores.core import Trace
from elman.network.model import LanguageModel
from elman.network.output.choice import Choice
from elman.network.output.contexts import MixtureContexts
from elman.objective.penalties import squared_variation

COMPONENT_HEADER = ["component", "weight", "share", "entropy, bits", "perplexity", "heaviest before"]

_ELEMENTS = 1 << 24
"""Log-probabilities per window, at most."""


class MixtureReading(NamedTuple):
    """The mixture at every position of a text, before its token is read.

    The layer of each component, [K] (0 is the embedding); its weight, the entropy of its distribution in bits and the
    log-probability of the token under it in nats, [T, K]; its most probable words and their probabilities, [T, K, n].
    """

    levels: list[int]
    prior: np.ndarray
    entropy: np.ndarray
    top: np.ndarray
    top_prob: np.ndarray
    component_log_prob: np.ndarray

    @property
    def log_prob(self) -> np.ndarray:
        """Of the token under the mixture, nats, [T]."""
        return np.logaddexp.reduce(np.log(self.prior) + self.component_log_prob, axis=-1)

    @property
    def responsibility(self) -> np.ndarray:
        """The share of each component in the probability of the token, [T, K]."""
        return self.prior * np.exp(self.component_log_prob - self.log_prob[:, None])

    @property
    def names(self) -> list[str]:
        """The names of the components, such as "layer 2.1" for the first of layer 2, [K]."""
        return [f"layer {level}.{self.levels[: at + 1].count(level)}" for at, level in enumerate(self.levels)]

    @property
    def by_level(self) -> dict[int, np.ndarray]:
        """The weights of every layer's components together, [T]."""
        levels = np.array(self.levels)
        return {level: self.prior[:, levels == level].sum(-1) for level in dict.fromkeys(self.levels)}

    @property
    def variation(self) -> float:
        """The coefficient of variation of the summed weights (Takase et al. 2018, eqs 12-13): 0 where all are equal."""
        return math.sqrt(float(squared_variation(torch.from_numpy(self.prior.sum(0)))))


def effective_number(weights: np.ndarray) -> np.ndarray:
    """How many components are in use: exp of the entropy of weights [..., K], between 1 and K.

    Example:
        >>> effective_number(np.array([0.5, 0.5, 0.0])).round(3).item()
        2.0
    """
    logs = np.log(np.where(weights > 0, weights, 1.0))
    return np.exp(-(weights * logs).sum(-1))


def read_mixture(
    model: LanguageModel, tokens: np.ndarray, first: int, top: int = 5, *, inputs: np.ndarray | None = None
) -> MixtureReading:
    """Read a stream [T], T > 0, after the symbol `first`, and keep the prediction of every component.

    The `top` most probable words of each component are kept; `inputs` [T] are read in place of the stream (see
    `elman.evaluation.scoring`). The model is in evaluation mode; raises UserError where its output is no mixture.
    """
    levels = levels_of(model)
    windows = list(_read(model, tokens, first, inputs, len(levels), top))
    return MixtureReading(levels, *(torch.cat(parts).cpu().numpy() for parts in zip(*windows, strict=True)))


def levels_of(model: LanguageModel) -> list[int]:
    """The layer of each component, [K]; raises UserError where the output of the model is no mixture."""
    contexts = model.output.contexts
    if not isinstance(contexts, MixtureContexts):
        raise UserError(
            "the output of the run is a single distribution, not a mixture; choose a run whose recipe has"
            ' model.output.contexts.kind = "mixture"'
        )
    return [level for level, count in contexts.heads.items() for _ in range(count)]


@torch.inference_mode()
def components(model: LanguageModel, trace: Trace) -> tuple[Tensor, Tensor]:
    """The weights [N, K] of the components at N positions, and the log-probabilities [N, K, V] of each, in float64."""
    choice = model.output.choice
    assert isinstance(choice, Choice), "words, not frames of notes"
    vectors, log_prior = model.output.contexts(trace)
    return log_prior.flatten(0, 1).double().exp(), choice.log_probs(vectors.flatten(0, 1)).double()


@torch.inference_mode()
def _read(
    model: LanguageModel, tokens: np.ndarray, first: int, inputs: np.ndarray | None, num_components: int, top: int
) -> Iterator[tuple[Tensor, ...]]:
    length = max(1, min(256, _ELEMENTS // (num_components * num_words(model))))
    for batch, _, trace in traces(model, EvaluationWindows(tokens, first, length=length, inputs=inputs)):
        targets = batch.targets.flatten()
        prior, each = components(model, trace)
        probs = each.exp()
        # An impossible word has no share in the entropy: 0 log 0 = 0.
        entropy = torch.special.entr(probs).sum(-1) / math.log(2)
        best = probs.topk(min(top, probs.shape[-1]))
        own = each.gather(-1, targets.view(-1, 1, 1).expand(-1, num_components, 1)).squeeze(-1)
        yield prior, entropy, best.indices, best.values, own


def write_mixture_page(
    out: Path, title: str, words: Sequence[str], reading: MixtureReading, vocabulary: Vocabulary, shown: int
) -> Path:
    """Write the page about a run's mixture over a text of these words; `shown` of them one by one."""
    part = part_of(shown, len(words), "tokens")
    about_components = (
        "Layer 0 is the embedding. Weight: the mean of the prior. Share: of the probability of the words."
        " Entropy and perplexity: of the component alone. Last: the words before which it weighs most."
    )
    about_words = (
        f"The weight of every component before each word was read, for {part}; the warmer, the larger."
        " Point at a cell for the words that the component predicts there."
    )
    table = Table("", COMPONENT_HEADER, component_rows(words, reading), about_components)
    sections = [
        Section("Components", tables=[table]),
        _shares(reading, shown, part),
        Section("Word by word", [about_words], body=_grid(words[:shown], reading, vocabulary)),
    ]
    kind = "Mixture of output distributions"
    return write_page(out, kind=kind, title=title, verdict=verdict(reading), sections=sections)


def verdict(reading: MixtureReading) -> str:
    """How many components there are, where, and how evenly they are used."""
    where = ", ".join(f"{reading.levels.count(level)} from layer {level}" for level in dict.fromkeys(reading.levels))
    at_once = float(effective_number(reading.prior).mean())
    overall = float(effective_number(reading.prior.mean(0)))
    return (
        f"{len(reading.levels)} components ({where}). At one position {at_once:.1f} are in use on average, over the"
        f" whole text {overall:.1f}; the coefficient of variation of their summed weights is {reading.variation:.2f}"
        " (0 where all are used equally)."
    )


def component_rows(words: Sequence[str], reading: MixtureReading) -> list[list[str]]:
    """A row per component: weight, responsibility, entropy, its own perplexity, words before which it weighs most."""
    prior, share = reading.prior.mean(0), reading.responsibility.mean(0)
    alone = np.exp(np.minimum(-reading.component_log_prob.mean(0), 700.0))
    return [
        [
            name,
            f"{100 * prior[at]:.1f} %",
            f"{100 * share[at]:.1f} %",
            f"{reading.entropy[:, at].mean():.2f}",
            f"{alone[at]:,.1f}",
            " ".join(list(dict.fromkeys(words[place] for place in np.argsort(-reading.prior[:, at])))[:5]),
        ]
        for at, name in enumerate(reading.names)
    ]


def _shares(reading: MixtureReading, shown: int, part: str) -> Section:
    levels, groups = reading.by_level, dict(zip(reading.names, reading.prior.T, strict=True))
    if len(levels) > 1:
        groups = {f"layer {level}": weights for level, weights in levels.items()}
    figure, axes = canvas("wide")
    colours = list(map(colour, range(len(groups))))
    stack = [np.append(weights[:shown], weights[shown - 1]) for weights in groups.values()]  # a step of width 1 each
    axes.stackplot(np.arange(shown + 1) - 0.5, *stack, colors=colours, alpha=0.75, step="post", linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_xlim(-0.5, shown - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    label(axes, "position in the text", "weight")
    drawing = svg(figure, "shares", "Weights over the text", "stacked, one band per layer or component")
    title = "Weights by layer" if len(levels) > 1 else "Weights by component"
    return Section(title, [f"Stacked, for {part}."], legend(groups), [Figure("", drawing)])


def _grid(words: Sequence[str], reading: MixtureReading, vocabulary: Vocabulary) -> Markup:
    """A row per word, a cell per component, coloured by its weight."""
    bits = -reading.log_prob / np.log(2)
    in_use = effective_number(reading.prior)
    levels = dict.fromkeys(reading.levels)
    over = "".join(f'<th colspan="{reading.levels.count(level)}">layer {level}</th>' for level in levels)
    numbers = "".join(f"<th>{name.partition('.')[2]}</th>" for name in reading.names)
    rows = "\n".join(
        f"<tr><th>{escape(word)}</th><td>{bits[at]:.1f}</td><td>{in_use[at]:.1f}</td>"
        f"{_cells(at, reading, vocabulary)}</tr>"
        for at, word in enumerate(words)
    )
    return Markup(
        '<div class="scroll grid" role="region" aria-label="Weights word by word" tabindex="0"><table>'
        f'<thead><tr><th rowspan="2">word</th><th rowspan="2">bits</th><th rowspan="2">in use</th>{over}</tr>'
        f"<tr>{numbers}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cells(at: int, reading: MixtureReading, vocabulary: Vocabulary) -> str:
    cells = []
    for component, name in enumerate(reading.names):
        weight = reading.prior[at, component]
        best = vocabulary.decode(reading.top[at, component])
        chances = reading.top_prob[at, component]
        guesses = ", ".join(f"{word} {100 * chance:.0f} %" for word, chance in zip(best, chances, strict=True))
        tooltip = f"{name}: weight {100 * weight:.0f} %, entropy {reading.entropy[at, component]:.1f} bits; {guesses}"
        shown = f"{100 * weight:.0f}" if weight >= 0.005 else ""  # empty where it would be 0
        cells.append(f'<td style="--heat:{weight:.2f}" title="{escape(tooltip)}">{shown}</td>')
    return "".join(cells)
