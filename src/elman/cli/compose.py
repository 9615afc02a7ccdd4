"""elman compose: music from a run on music."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Meta

from elman.cli import show
from elman.cli.options import AsJson, Machine, Natural, Positive, number, open_as, option
from elman.config.inference import Sampling


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
    as_json: AsJson = False,
    machine: Machine = Machine(),
) -> int:
    """Write music as a MIDI file.

    Args:
        run: A run on music.
        out: The file to write, such as tune.mid.
        steps: Steps to draw.
        temperature: As for text.
        seed: Seed of the draws.
        prompt_midi: A MIDI file to continue; it is repeated in the output.
        tempo: Quarter notes per minute in the file.
        as_json: As JSON.
        machine: Where.
    """
    import numpy as np

    from elman.data.music.midi import read_midi, write_midi
    from elman.tasks.music.run import MusicRun

    loaded = open_as(MusicRun, run, machine)
    music = loaded.options
    prompt = None if prompt_midi is None else read_midi(prompt_midi, music)
    roll = loaded.compose(steps=steps, seed=seed, prompt=prompt, temperature=temperature)
    if prompt is not None:
        roll = np.concatenate([prompt, roll])
    write_midi(out, roll, music, tempo)
    if as_json:
        show.print_json({"file": str(out), "steps": len(roll), "notes": int(roll.sum()), "seed": seed})
    else:
        print(f"{out}: {len(roll):,} steps, {roll.sum() / len(roll):.1f} notes sounding at once on average")
    return 0
