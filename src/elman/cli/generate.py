"""elman generate, compose and forecast: text, music and series, drawn from a trained model."""

import csv
import io
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter
from msgspec import Meta

from elman.cli import show, states, texts
from elman.cli.adaptation import OnlineOptions
from elman.cli.options import (
    Common,
    FreeText,
    Natural,
    OutFile,
    Positive,
    Reals,
    TextRunFolder,
    Whole,
    group,
    number,
    option,
    record_of,
)
from elman.config.inference import Sampling
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.data.series.table import Array
    from elman.data.text.tokeniser import Detokeniser, Tokeniser


@group("Sampling", 2)
class SamplingOptions:
    """How tokens are drawn.

    Attributes:
        seed: seed of the draws (default: 0; with --state the draws continue where they were left).
        unk: allow <unk> to be drawn.
    """

    temperature: Annotated[float | None, option("temperature", Sampling())] = None
    top_k: Annotated[int | None, option("top_k", Sampling())] = None
    top_p: Annotated[float | None, option("top_p", Sampling())] = None
    seed: Whole | None = None
    unk: bool = False


def generate(
    run: TextRunFolder,
    /,
    *,
    prompt: FreeText = "",
    tokens: Natural = 200,
    raw: bool = False,
    sampling: SamplingOptions = SamplingOptions(),
    state: Annotated[Path | None, Parameter(alias="--load-state", metavar="FILE")] = None,
    save_state: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    adaptation: OnlineOptions = OnlineOptions(),
    common: Common = Common(),
) -> None:
    """Write text, token by token, in constant memory, however long.

    --state continues where --save-state left a text. With --adapt the model learns from the prompt.

    Args:
        prompt: text to continue; - reads standard input
        tokens: number of tokens
        raw: print tokens as they are, separated by spaces
        state: begin from a state that --save-state wrote
        save_state: write the state after the last token
    """
    from elman.decoding.sampling import generate as draw

    adaptation.check()
    chosen = record_of(Sampling(), sampling)
    loaded = common.open_text(run)
    chosen = msgspec.structs.replace(chosen, forbidden=() if sampling.unk else loaded.unspeakable)
    prompt = texts.read_text("-", loaded.tokeniser.options) if prompt == "-" else prompt
    saved = None if state is None else states.load(state, loaded)
    model, ids = loaded.read(prompt)
    stream = adaptation.stream(loaded, saved, model) if adaptation.adapt else None
    if stream is not None:
        stream.score(loaded.encode(prompt), ids)
        model, unread, place = stream.model, stream.unread, stream.state
    else:
        unread, place = states.begin(loaded, ids, saved)
    generator = states.draws(saved, sampling.seed, loaded.device)
    texts.write_any_text()
    undo = None if common.as_json else _after(loaded.tokeniser, prompt, raw=raw)
    words: list[str] = []
    for symbol, before in itertools.islice(draw(model, unread, place, chosen, generator), tokens):
        unread, place = [symbol], before
        word = loaded.vocabulary.words[symbol]
        if undo is None:
            words.append(word)
        else:
            sys.stdout.write(undo.add(word))
            sys.stdout.flush()
    if save_state:
        states.save(save_state, loaded, place, unread, stream, adaptation.statistics_tokens, generator)
    if undo is None:
        text = loaded.tokeniser.decode(words)
        show.print_json({"prompt": prompt, "words": words, "text": text, "seed": generator.initial_seed()})
    else:
        sys.stdout.write(undo.end() + "\n")


def _after(tokeniser: "Tokeniser", prompt: str, *, raw: bool) -> "Detokeniser":
    """Print the prompt, and return what makes text of the tokens that follow it, as they are drawn."""
    from elman.data.text.tokeniser import Detokeniser

    options = tokeniser.options
    undo = Detokeniser(msgspec.structs.replace(options, tokenisation="words", eos="line") if raw else options)
    if prompt:
        sys.stdout.write(prompt)
        for word in tokeniser.encode(prompt):
            undo.add(word)
    return undo


def forecast(
    run: Path,
    /,
    *,
    steps: Positive = 100,
    samples: Positive = 100,
    seed: Natural = 0,
    temperature: Annotated[float, number(float, Meta(ge=0))] = 1.0,
    quantiles: Reals = (0.1, 0.5, 0.9),
    every_sample: bool = False,
    history: Annotated[Path | None, Parameter(name="--from", metavar="FILE")] = None,
    out: OutFile = None,
    common: Common = Common(),
) -> None:
    """Continue a series freely: every step is drawn given the steps drawn before it.

    The table has a row per step: for each column the mean and the quantiles over the samples, or with --every-sample
    the samples themselves.

    Args:
        run: a run on series
        steps: steps to draw
        samples: continuations to draw
        seed: seed of the draws
        temperature: multiplies the variances; 0 takes the mean, of a mixture that of its heaviest component
        quantiles: over the samples, each between 0 and 1
        every_sample: write the samples instead of means and quantiles
        history: a series to continue, read as the data of the run was (default: the run's own data, to its end)
        out: the CSV file to write (default: standard output)
    """
    from elman.files import write_atomic
    from elman.tasks.series.run import SeriesRun

    if not all(0 <= one <= 1 for one in quantiles):
        raise UserError(f"--quantiles {' '.join(f'{one:g}' for one in quantiles)}: each must be between 0 and 1")
    loaded = common.open_as(SeriesRun, run)
    read = None if history is None else loaded.table(history)
    drawn = loaded.forecast(steps=steps, samples=samples, seed=seed, history=read, temperature=temperature)
    table = _samples(drawn, loaded.inputs.names) if every_sample else _summary(drawn, loaded.inputs.names, quantiles)
    if out is not None:
        write_atomic(out, _csv(table))
    facts = {"run": str(run), "samples": samples, "seed": seed, "forecast": table}
    note = _csv(table).rstrip("\n") if out is None else f"{out}: {steps:,} steps, {samples:,} samples"
    show.print_result(common.as_json, facts, notes=[note])


def _summary(drawn: "Array", names: Sequence[str], quantiles: Sequence[float]) -> dict[str, list[float]]:
    """Columns of means and quantiles over samples [samples, steps, P]."""
    import numpy as np

    table = {}
    for index, name in enumerate(names):
        table[f"{name} mean"] = drawn[:, :, index].mean(axis=0).tolist()
        for one in quantiles:
            table[f"{name} q{one:g}"] = np.quantile(drawn[:, :, index], one, axis=0).tolist()
    return table


def _samples(drawn: "Array", names: Sequence[str]) -> dict[str, list[float]]:
    """Columns of samples [samples, steps, P]."""
    return {
        f"{name} sample {number}": sample[:, index].tolist()
        for index, name in enumerate(names)
        for number, sample in enumerate(drawn, start=1)
    }


def _csv(table: dict[str, list[float]]) -> str:
    """A row per step, numbered from 1, under a header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["step", *table])
    writer.writerows([step, *row] for step, row in enumerate(zip(*table.values(), strict=True), start=1))
    return file.getvalue()
