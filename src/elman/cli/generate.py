"""elman generate and elman compose: text and music, drawn from a trained model."""

import itertools
import sys
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
    Positive,
    TextRunFolder,
    Whole,
    group,
    number,
    option,
    record_of,
)
from elman.config.inference import Sampling

if TYPE_CHECKING:
    from elman.data.text.tokeniser import Tokeniser


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
    printer = None if common.as_json else _Printer(loaded.tokeniser, prompt, raw=raw)
    words: list[str] = []
    for symbol, before in itertools.islice(draw(model, unread, place, chosen, generator), tokens):
        unread, place = [symbol], before
        word = loaded.vocabulary.words[symbol]
        if printer is None:
            words.append(word)
        else:
            printer.write(word)
    if save_state:
        states.save(save_state, loaded, place, unread, stream, adaptation.statistics_tokens, generator)
    if printer is None:
        text = loaded.tokeniser.decode(words)
        show.print_json({"prompt": prompt, "words": words, "text": text, "seed": generator.initial_seed()})
    else:
        printer.end()


class _Printer:
    """Prints tokens as they are drawn, as readable text or unchanged."""

    def __init__(self, tokeniser: "Tokeniser", prompt: str, *, raw: bool) -> None:
        from elman.data.text.tokeniser import Detokeniser

        options = tokeniser.options
        self.undo = Detokeniser(msgspec.structs.replace(options, tokenisation="words", eos="line") if raw else options)
        if prompt:
            sys.stdout.write(prompt)
            for word in tokeniser.encode(prompt):
                self.undo.add(word)

    def write(self, word: str) -> None:
        sys.stdout.write(self.undo.add(word))
        sys.stdout.flush()

    def end(self) -> None:
        sys.stdout.write(self.undo.end() + "\n")


def compose(
    run: Path,
    /,
    *,
    out: Annotated[Path, Parameter(metavar="FILE")],
    steps: Positive = 128,
    temperature: Annotated[float, option("temperature", Sampling())] = Sampling().temperature,
    seed: Natural = 0,
    prompt_midi: Path | None = None,
    tempo: Annotated[float, number(float, Meta(ge=4, le=1000))] = 120.0,
    common: Common = Common(),
) -> None:
    """Write music as a MIDI file.

    Args:
        run: a run on music
        out: the file to write, such as tune.mid
        steps: steps to draw
        seed: seed of the draws
        prompt_midi: a MIDI file to continue; it is repeated in the output
        tempo: quarter notes per minute in the file
    """
    import numpy as np

    from elman.data.music.midi import read_midi, write_midi
    from elman.tasks.music.run import MusicRun

    loaded = common.open_as(MusicRun, run)
    music = loaded.options
    prompt = None if prompt_midi is None else read_midi(prompt_midi, music)
    roll = loaded.compose(steps=steps, seed=seed, prompt=prompt, temperature=temperature)
    if prompt is not None:
        roll = np.concatenate([prompt, roll])
    write_midi(out, roll, music, tempo)
    facts = {"file": str(out), "steps": len(roll), "notes": int(roll.sum()), "seed": seed}
    average = f"{roll.sum() / len(roll):.1f} notes sounding at once on average"
    show.print_result(common.as_json, facts, notes=[f"{out}: {len(roll):,} steps, {average}"])
