"""elman evaluate: perplexity of a split, of music nats per step; of pairs, trees and tags other measures too."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from elman.cli import progress, show
from elman.cli.adaptation import MethodOptions
from elman.cli.groups import Common, Machine, SplitOptions, sources_of
from elman.cli.mixing import MixtureOptions
from elman.cli.options import (
    AsUnk,
    NonNegatives,
    RunFolders,
    TextRunFolder,
    given,
    group,
    number,
    record_of,
    refuse,
)
from elman.cli.temperature import TemperatureOptions
from elman.config.record import TOKENS
from elman.config.text import TextEvaluation
from elman.errors import UserError, notice
from elman.evaluation.result import Result
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.hub import fetched

if TYPE_CHECKING:
    import numpy as np


@group("Text", 3, of=EvaluationOptions(), names=("warm_up", "skip_first", "unknown_as_unk", "stride"))
class TextOptions:
    """How runs on text are evaluated."""


@group("Ensemble", 5)
class EnsembleOptions:
    """Several runs as one model.

    Attributes:
        ensemble: average the probabilities of the runs.
        weights: one weight per run (default: equal); with --mix they share what the n-gram models leave.
    """

    ensemble: bool = False
    weights: NonNegatives = ()


@group("Pairs", 6, of=EvaluationOptions(), names=("beam",))
class PairsOptions:
    """How the targets of runs on pairs are searched for.

    Attributes:
        unconstrained: of trees: let the model write any line; by default it writes only trees over all words of the
            source, unless the recipe has data.evaluation.constrained = false.
    """

    unconstrained: bool = False


@group("Series", 8, of=EvaluationOptions(), names=("missing",))
class SeriesOptions:
    """How gaps in a series are read."""


@group("Trees", 7, of=EvaluationOptions(), names=("search",))
class TreesOptions:
    """How a parser searches."""


@group("Music", 8, of=EvaluationOptions(), names=("skip_unreadable",))
class MusicOptions:
    """How music is read."""


def evaluate(
    runs: RunFolders,
    /,
    *,
    split: SplitOptions = SplitOptions(),
    text: TextOptions = TextOptions(),
    temperature: TemperatureOptions = TemperatureOptions(),
    adaptation: MethodOptions = MethodOptions(),
    ensemble: EnsembleOptions = EnsembleOptions(),
    mixture: MixtureOptions = MixtureOptions(),
    pairs: PairsOptions = PairsOptions(),
    trees: TreesOptions = TreesOptions(),
    series: SeriesOptions = SeriesOptions(),
    music: MusicOptions = MusicOptions(),
    common: Common = Common(),
) -> None:
    """Perplexity of a split (of music: nats per step), every token counted once.

    The stream is preceded by one <eos>, so that its first token counts too; the state is carried over the whole
    split, in music over each piece. Of trees the labels of constituents are evaluated, and the brackets that a parser
    finds, of tags for words and the chunks that they make up, each beside baselines. --ensemble averages the
    probabilities of several runs, each of which adapts by itself under --method dynamic or cache; --mix averages each
    run with n-gram models; --method mc-dropout averages several passes of one run, each with masks of dropout as in
    training.
    """
    from elman.tasks.open import open_run
    from elman.tasks.text.model import Foreign, open_foreign

    device = common.use()
    streams = None if split.streams == 1 else split.streams
    constrained = False if pairs.unconstrained else None
    how = EvaluationOptions(split=split.split, data=split.data, streams=streams, constrained=constrained)
    how = record_of(how, text, pairs, trees, series, music)
    if not ensemble.ensemble:
        refuse(given(ensemble), "belongs to --ensemble; add it")
    elif not mixture.mix:
        refuse(
            [*given(pairs), *given(trees), *given(series), *given(music)], "does not belong to --ensemble; leave it out"
        )
    mixture.refuse_with([*given(pairs), *given(trees), *given(series), *given(music)])
    adaptation.check()
    if adaptation.method == "mc-dropout" and (ensemble.ensemble or mixture.mix):
        raise UserError("--method mc-dropout is of one network; leave out --ensemble and --mix")
    if adaptation.method != "static":
        if how.streams is not None or how.warm_up:
            raise UserError(f"--method {adaptation.method} reads one stream; leave out --streams and --warm-up")
        others = [*given(pairs), *given(trees), *given(temperature)]
        refuse(others, f"does not belong to --method {adaptation.method}; leave it out")
    reporting = TOKENS
    if ensemble.ensemble or mixture.mix:
        groups = [runs] if ensemble.ensemble else [(run,) for run in runs]
        rows = [_ensemble(group, split, how, temperature, adaptation, ensemble, mixture, common) for group in groups]
    else:
        opened = [open_foreign(fetched(folder), device, folder) or open_run(folder, device) for folder in runs]
        rows = []
        for number, (folder, run) in enumerate(zip(runs, opened, strict=True)):
            if isinstance(run, Foreign):
                own = [*given(temperature), *(["--method"] if adaptation.method != "static" else [])]
                refuse(own, f"belongs to runs of elman, and {folder} is none; leave it out")
                with progress.counting(f"evaluating {folder}") as advance:
                    rows.append(msgspec.structs.replace(run.evaluate(how, advance), run=str(folder)))
            else:
                fields = temperature.join(run, split.split, own=split.data is None)
                rows.append(msgspec.structs.replace(adaptation.evaluate(run, how), **fields))
                reporting = run.recipe.data.reporting if number == 0 else reporting
            if number == 0:
                split.say_part(run)
    if common.as_json:
        facts = [row.as_dict() for row in rows]
        show.print_json(facts[0] if len(facts) == 1 else facts)
        return
    sources = sources_of((row.data for row in rows), "figures")
    contexts = " or ".join(dict.fromkeys(str(row.context) for row in rows))
    title = f"{' and '.join(sources)}, context {contexts}, {rows[0].method}"
    if adaptation.method == "mc-dropout" and rows[0].settings is not None:
        title += " ({samples} passes, seed {seed}, masks held for {length} steps)".format(**rows[0].settings)
    named = [(str(one.run), one) for row in rows for one in (*(row.members or ()), row)]
    show.print_figures(title, "run", named, reporting)


def _ensemble(
    folders: tuple[Path, ...],
    split: SplitOptions,
    how: EvaluationOptions,
    temperature: TemperatureOptions,
    adaptation: MethodOptions,
    ensemble: EnsembleOptions,
    mixture: MixtureOptions,
    machine: Machine,
) -> Result:
    from elman.tasks.text.ensemble import StreamModel, ensemble_result, member_log_probs, require_one_vocabulary

    runs = [machine.open_text(folder) for folder in folders]
    require_one_vocabulary(runs)  # before hours of tuning
    if ensemble.weights and len(ensemble.weights) != len(runs):
        raise UserError(f"--weights has {len(ensemble.weights)} numbers, but the ensemble has {len(runs)} runs")
    if ensemble.weights and not sum(ensemble.weights):
        raise UserError("--weights: all are 0; give a run a weight above 0")
    split.say_part(runs[0])
    corpus = runs[0].corpus(split.data)
    split.say_others(runs)
    reader = next((one for one in runs if one.reads_spelling), runs[0])
    chosen = reader.split(corpus, split.split, known_only=how.unknown_as_unk)
    counts: Sequence[StreamModel] = mixture.models(runs[0])
    rules = TextEvaluation(streams=split.streams, warm_up=how.warm_up, skip_first=how.skip_first)
    weights = list(ensemble.weights) or [1.0] * len(runs)
    if mixture.mix and ensemble.weights and mixture.parts()[1] is None:
        raise UserError("--weights: EM finds all weights; give --mix its weights too, or leave --weights out")
    tempered = [temperature.join(run, split.split, own=split.data is None) for run in runs]
    read, methods = adaptation.networks(runs, split.split, own=split.data is None)
    fields = [{**one, **other} for one, other in zip(tempered, methods, strict=True)]
    if mixture.mix:
        if split.split == "valid" and mixture.parts()[1] is None:
            notice("the weights of the mixture are chosen on the split that is evaluated; --split test is held out")

        def on_valid() -> "list[np.ndarray]":
            valid = reader.split(runs[0].corpus(), "valid", known_only=how.unknown_as_unk)
            return member_log_probs(runs, valid, counts, runs[0].data.evaluation.for_choosing, read)

        weights = mixture.weights(weights, on_valid)
    log_probs = member_log_probs(runs, chosen, counts, rules, read)
    names = [*map(str, folders), *mixture.parts()[0]]
    counted = chosen.counted(skip_first=rules.skip_first)
    return msgspec.structs.replace(
        ensemble_result(names, log_probs, weights, fields, counted),
        data=corpus.source,
        method="ensemble" if adaptation.method == "static" else f"{adaptation.method} ensemble",
        context="carried",
        streams=split.streams,
        warm_up=how.warm_up or None,
    )


def frequency(
    run: TextRunFolder,
    /,
    *,
    split: SplitOptions = SplitOptions(),
    edges: Annotated[tuple[int, ...], number(int, Meta(ge=1), many=True)] = (),
    unknown_as_unk: AsUnk = False,
    common: Common = Common(),
) -> None:
    """Perplexity of rare and frequent words, and of what follows them.

    Perplexity of a split by how often its words were seen in training: of the words themselves, and of the tokens that
    follow them, where the model has read them. <unk> has a row of its own. Prints a table, no page.

    Args:
        edges: rising counts at which bins of frequency begin, beside 0 (default: 1 5 25 100 1000)
    """
    from elman.analysis.by_word import EDGES, by_frequency
    from elman.tasks.text.ensemble import run_log_probs

    chosen = edges or EDGES
    if list(chosen) != sorted(set(chosen)):
        raise UserError(f"--edges {' '.join(map(str, chosen))}: they must rise")
    loaded = common.open_text(run)
    split.say_part(loaded)
    corpus = loaded.corpus(split.data)
    read = corpus.split(split.split) if unknown_as_unk else loaded.split(corpus, split.split)
    log_probs = run_log_probs(loaded, read, TextEvaluation(streams=split.streams))
    train, vocabulary = loaded.corpus().split("train").tokens, loaded.vocabulary
    bins = by_frequency(log_probs, read.tokens, train, len(vocabulary), vocabulary.unk, chosen)
    measured = ("tokens", "perplexity", "following", "following_perplexity")
    rows = [{"seen": one.name} | {name: getattr(one, name) for name in measured} for one in bins]
    facts = {"run": str(run), "data": corpus.source, "split": split.split, "bins": rows}
    header = ["seen in training", "tokens", "perplexity", "tokens after them", "perplexity"]
    cells = [
        [one.name, f"{one.tokens:,}", _number(one.perplexity), f"{one.following:,}", _number(one.following_perplexity)]
        for one in bins
    ]
    show.print_result(common.as_json, facts, (f"{run}, {split.split}: by training frequency", header, cells))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
