"""elman evaluate: perplexity of a split, of music nats per step, of pairs the measures of the output as well."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from elman.cli import progress, show
from elman.cli.adaptation import MethodOptions
from elman.cli.options import (
    AsJson,
    AsUnk,
    Machine,
    Natural,
    Positive,
    Reals,
    SplitOptions,
    given,
    group,
    option,
    refuse,
)
from elman.config.inference import Beam
from elman.errors import UserError

if TYPE_CHECKING:
    import torch

    from elman.tasks.pairs.run import PairRun


@group("Text", 3)
@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How runs on text are evaluated.

    Attributes:
        warm_up: tokens that each column reads, uncounted, before its part.
        skip_first: leave out the first token, as published figures do.
    """

    warm_up: Natural = 0
    skip_first: bool = False
    unknown_as_unk: AsUnk = False


@group("Ensemble", 5)
@dataclass(frozen=True, kw_only=True)
class EnsembleOptions:
    """Several runs as one model.

    Attributes:
        ensemble: average the probabilities of the runs.
        ngram: add a Kneser-Ney model of this order.
        weights: one weight per member, the n-gram model last (default: equal).
    """

    ensemble: bool = False
    ngram: Positive | None = None
    weights: Reals = ()


@group("Pairs", 6)
@dataclass(frozen=True, kw_only=True)
class PairsOptions:
    """How the targets of runs on pairs are searched for.

    Attributes:
        unconstrained: of trees: let the model write any line; by default it writes only trees over all words of the
            source, unless the recipe has evaluation.constrained = false.
    """

    beam: Annotated[int | None, option("size", Beam())] = None
    unconstrained: bool = False


def evaluate(
    runs: tuple[Path, ...],
    /,
    *,
    split: SplitOptions = SplitOptions(),
    text: TextOptions = TextOptions(),
    adaptation: MethodOptions = MethodOptions(),
    ensemble: EnsembleOptions = EnsembleOptions(),
    pairs: PairsOptions = PairsOptions(),
    as_json: AsJson = False,
    machine: Machine = Machine(),
) -> int:
    """Perplexity of a split (of music: nats per step), every token counted once.

    The stream is preceded by one <eos>, so that its first token counts too; the state is carried over the whole
    split, in music over each piece. With --ensemble the probabilities of several runs are averaged.

    Args:
        runs: run folders
        text: how text is read
        adaptation: the method
        ensemble: several runs as one
        pairs: of runs on pairs
    """
    device = machine.use()
    if not ensemble.ensemble:
        refuse(list(given(ensemble)), "belongs to --ensemble; add it")
    else:
        refuse(list(given(pairs)), "does not belong to --ensemble; leave it out")
    adaptation.check()
    if adaptation.method != "static":
        if ensemble.ensemble or split.streams != 1 or text.warm_up:
            raise UserError(
                f"--method {adaptation.method} reads one stream with one model; leave out --ensemble, --streams and"
                " --warm-up"
            )
        refuse(list(given(pairs)), f"does not belong to --method {adaptation.method}; leave it out")
    if ensemble.ensemble:
        rows = [_ensemble(runs, split, text, ensemble, device)]
    elif adaptation.method == "static":
        rows = [_static(run, split, text, pairs, device) for run in runs]
    else:
        how = {"unknown_as_unk": text.unknown_as_unk, "skip_first": text.skip_first}
        rows = [adaptation.evaluate(run, device, split.data, split.split, **how) for run in runs]
    if as_json:
        show.print_json(rows[0] if len(rows) == 1 else rows)
        return 0
    title = f"{rows[0]['data']}, context {rows[0]['context']}, {rows[0]['method']}"
    show.print_figures(title, "run", [{"name": row["run"], **row} for row in rows])
    for row in rows:
        if "output" in row:
            show.print_output(row["run"], row["output"])
    return 0


def _static(
    folder: Path, split: SplitOptions, text: TextOptions, pairs: PairsOptions, device: "torch.device"
) -> dict[str, Any]:
    from elman.evaluation.music import evaluate_pieces
    from elman.evaluation.perplexity import split_figures
    from elman.tasks.music.run import MusicRun
    from elman.tasks.open import open_run
    from elman.tasks.pairs.run import PairRun

    loaded = open_run(folder, device)
    if isinstance(loaded, PairRun):
        return _pairs(loaded, split, text, pairs)
    refuse(list(given(pairs)), "belongs to runs on pairs; leave it out")
    if isinstance(loaded, MusicRun):
        if text.warm_up or text.skip_first:
            raise UserError("--warm-up and --skip-first are for text; music is evaluated over whole pieces")
        music = loaded.music(split.data)
        with progress.counting(f"evaluating {folder}") as advance:
            columns = 20 if split.streams == 1 else split.streams
            figures = evaluate_pieces(loaded.model, music.split(split.split), columns=columns, advance=advance)
        return {"run": str(folder), "data": music.source, **figures, "method": "static"}
    corpus = loaded.corpus(split.data)
    with progress.counting(f"evaluating {folder}") as advance:
        figures = split_figures(
            loaded.model,
            corpus.split(split.split) if text.unknown_as_unk else loaded.split(corpus, split.split),
            loaded.first,
            streams=split.streams,
            warm_up=text.warm_up,
            skip_first=text.skip_first,
            advance=advance,
        )
    return {"run": str(folder), "data": corpus.source, **figures, "method": "static"}


def _pairs(loaded: "PairRun", split: SplitOptions, text: TextOptions, options: PairsOptions) -> dict[str, Any]:
    import msgspec

    from elman.cli.translate import require_trees
    from elman.evaluation.targets import evaluate_output, evaluate_pairs, pair_figures

    if text.warm_up or text.skip_first:
        raise UserError("--warm-up and --skip-first are for text; targets are evaluated whole, each given its source")
    corpus = loaded.corpus(split.data)
    chosen = corpus.split(split.split)
    with progress.counting(f"evaluating {loaded.path}") as advance:
        size = 64 if split.streams == 1 else split.streams
        score = evaluate_pairs(loaded.model, corpus, chosen, batch_size=size, advance=advance)
    rules = loaded.recipe.evaluation
    if options.unconstrained:
        require_trees(loaded)
        rules = msgspec.structs.replace(rules, constrained=False)
    if options.beam is not None:
        rules = msgspec.structs.replace(rules, beam=options.beam)
    with progress.counting(f"writing targets with {loaded.path}") as advance:
        _, output = evaluate_output(loaded.model, corpus, chosen, rules, advance)
    facts = {"run": str(loaded.path), "data": corpus.source}
    return {**facts, **pair_figures(score, chosen), "method": "static", "output": output}


def _ensemble(
    folders: tuple[Path, ...], split: SplitOptions, text: TextOptions, ensemble: EnsembleOptions, device: "torch.device"
) -> dict[str, Any]:
    from elman.evaluation.perplexity import figures, score_of
    from elman.tasks.text.ensemble import ensemble_log_probs
    from elman.tasks.text.run import load

    runs = [load(folder, device) for folder in folders]
    members = len(runs) + (ensemble.ngram is not None)
    if ensemble.weights and len(ensemble.weights) != members:
        raise UserError(f"--weights has {len(ensemble.weights)} numbers, but the ensemble has {members} members")
    corpus = runs[0].corpus(split.data)
    reader = next((one for one in runs if one.reads_spelling), runs[0])
    chosen = corpus.split(split.split) if text.unknown_as_unk else reader.split(corpus, split.split)
    weights = list(ensemble.weights) or None
    log_probs = ensemble_log_probs(runs, chosen, ensemble.ngram, weights, split.streams, text.skip_first)
    names = [str(folder) for folder in folders]
    names += [f"Kneser-Ney {ensemble.ngram}-gram"] if ensemble.ngram else []
    return {
        "run": " + ".join(names),
        "data": corpus.source,
        **figures(score_of(log_probs), chosen),
        "method": "ensemble",
        "context": "carried",
        "streams": split.streams,
    }
