"""The page about a mixture over a text: its components, their weights at every word, and what each of them predicts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

from elman.data.vocabulary import Vocabulary
from elman.evaluation.mixture import Reading, effective_number
from elman.report.analysis import Figure, Section, Table, write_page
from elman.report.drawing import MUTED, SERIES, canvas, style, svg


def write_mixture_page(out: Path, title: str, words: Sequence[str], reading: Reading, vocabulary: Vocabulary,
                       shown: int) -> Path:  # fmt: skip
    """Write the page about a run's mixture over a text of these words; `shown` of them one by one."""
    part = f"the first {shown:,} of {len(words):,} tokens" if shown < len(words) else f"all {len(words):,} tokens"
    return write_page(
        out,
        kind="Mixture of output distributions",
        title=title,
        verdict=verdict(reading),
        sections=[
            _components(words, reading),
            _shares(reading, shown, part),
            Section(
                "Word by word",
                [
                    f"The weight of every component before each word was read, for {part}; the warmer, the heavier."
                    " Point at a cell for the words that the component expects there."
                ],
                body=_grid(words[:shown], reading, vocabulary),
            ),
        ],
    )


def verdict(reading: Reading) -> str:
    """How many components there are, where, and how evenly they are used."""
    count = len(reading.levels)
    where = ", ".join(f"{reading.levels.count(level)} from layer {level}" for level in dict.fromkeys(reading.levels))
    at_once = float(effective_number(reading.prior).mean())
    overall = float(effective_number(reading.prior.mean(0)))
    return (
        f"{count} components ({where}). At one position {at_once:.1f} are in use on average, over the whole text"
        f" {overall:.1f}; the coefficient of variation of their summed weights is {reading.variation:.2f}"
        " (0 where all are used alike)."
    )


def component_rows(words: Sequence[str], reading: Reading) -> list[list[str]]:
    """A row a component: weight, share in what was predicted, entropy, perplexity alone, words where it weighs most."""
    prior, share = reading.prior.mean(0), reading.responsibility.mean(0)
    alone = np.exp(np.minimum(-reading.component_log_prob.mean(0), 700.0))
    return [
        [
            name,
            f"{100 * prior[at]:.1f} %",
            f"{100 * share[at]:.1f} %",
            f"{reading.entropy[:, at].mean():.2f}",
            f"{alone[at]:,.1f}",
            " ".join(_heaviest(words, reading.prior[:, at])),
        ]
        for at, name in enumerate(reading.names)
    ]


COMPONENT_HEADER = ["component", "weight", "share", "entropy, bits", "perplexity", "heaviest before"]


def _heaviest(words: Sequence[str], weights: np.ndarray, count: int = 5) -> list[str]:
    return list(dict.fromkeys(words[at] for at in np.argsort(-weights)))[:count]


def _components(words: Sequence[str], reading: Reading) -> Section:
    note = (
        "Layer 0 is the embedding. Weight: the mean of the prior. Share: of the probability that the words got."
        " Entropy and perplexity: of the component alone. Last: the words that it weighs most before."
    )
    table = Table("", COMPONENT_HEADER, component_rows(words, reading), note)
    return Section("Components", tables=[table])


def _shares(reading: Reading, shown: int, part: str) -> Section:
    levels = reading.by_level
    groups = (
        {f"layer {level}": weights for level, weights in levels.items()}
        if len(levels) > 1
        else dict(zip(reading.names, reading.prior.T, strict=True))
    )
    figure, axes = canvas("wide")
    style(axes)
    colours = [SERIES[number % len(SERIES)] for number in range(len(groups))]
    stack = [weights[:shown] for weights in groups.values()]
    axes.stackplot(np.arange(shown), *stack, colors=colours, alpha=0.75, step="mid", linewidth=0)
    axes.set_ylim(0, 1)
    axes.set_xlim(-0.5, shown - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    axes.set_xlabel("position in the text", color=MUTED, fontsize=9.5)
    axes.set_ylabel("weight", color=MUTED, fontsize=9.5)
    drawing = svg(figure, "shares", "Weights over the text", "stacked, one band a layer or component")
    title = "Weights by layer" if len(levels) > 1 else "Weights by component"
    legend = [(name, number % len(SERIES)) for number, name in enumerate(groups)]
    return Section(title, [f"Stacked, for {part}."], legend, [Figure("", drawing)])


def _grid(words: Sequence[str], reading: Reading, vocabulary: Vocabulary) -> Markup:
    """A row a word, a cell a component, coloured by its weight."""
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


def _cells(at: int, reading: Reading, vocabulary: Vocabulary) -> str:
    cells = []
    for component, name in enumerate(reading.names):
        weight = reading.prior[at, component]
        best = vocabulary.decode(reading.top[at, component])
        chances = reading.top_prob[at, component]
        guesses = ", ".join(f"{word} {100 * chance:.0f} %" for word, chance in zip(best, chances, strict=True))
        told = f"{name}: weight {100 * weight:.0f} %, entropy {reading.entropy[at, component]:.1f} bits; {guesses}"
        cells.append(f'<td style="--heat:{weight:.2f}" title="{escape(told)}">{_percent(weight)}</td>')
    return "".join(cells)


def _percent(weight: float) -> str:
    """Whole per cent, and nothing where that would be 0."""
    return f"{100 * weight:.0f}" if weight >= 0.005 else ""
