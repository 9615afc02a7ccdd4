"""elman compose: music drawn from a trained model, as MIDI or as sound."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from msgspec import Meta

from elman.cli import show
from elman.cli.groups import Common
from elman.cli.options import Natural, Positive, file_to_write, number, option
from elman.cli.states import chosen_seed
from elman.config.inference import Sampling
from elman.errors import UserError


def compose(
    run: Path,
    /,
    *,
    out: Annotated[Path, Parameter(metavar="FILE", validator=file_to_write)],
    steps: Positive = 128,
    temperature: Annotated[float, option("temperature", Sampling())] = Sampling().temperature,
    seed: Natural | None = None,
    samples: Positive = 1,
    prompt_midi: Path | None = None,
    tempo: Annotated[float | None, number(float, Meta(ge=4, le=1000))] = None,
    common: Common = Common(),
) -> None:
    """Write music as a MIDI file, or as sound.

    The end of the name decides: .mid (or .midi) is MIDI, .wav sound. Several tunes are numbered: tune-1.mid,
    tune-2.mid.

    Args:
        run: a run on music
        out: the file to write, such as tune.mid or tune.wav
        steps: steps to draw
        seed: seed of the draws (default: a fresh one, printed on standard error); tune k has the seed plus k - 1
        samples: tunes to draw
        prompt_midi: a MIDI file to continue; the output begins with its notes as they are
        tempo: quarter notes per minute throughout (default: 120, or as the prompt has them, with their changes)
    """
    from elman.kinds.music.midi import SUFFIXES, require_mido, write_tune
    from elman.kinds.music.reading import read_prompt
    from elman.kinds.music.run import MusicRun
    from elman.kinds.music.sound import require_short, write_wav
    from elman.kinds.music.tune import Tune

    Sampling(temperature=temperature).check()
    suffix = out.suffix.lower()
    if suffix not in (*SUFFIXES, ".wav"):
        raise UserError(f"--out {out}: music is written as MIDI (.mid, .midi) or sound (.wav); give such a name")
    if suffix in SUFFIXES:
        require_mido()
    loaded = common.open_as(MusicRun, run)
    music, prompt, read = loaded.options, None, None
    if prompt_midi is not None:
        prompt, read = read_prompt(prompt_midi, music)
    begun = 0 if read is None else len(read)
    if suffix == ".wav":
        whole = (prompt or Tune((), 0.0, 1)).at_tempo(tempo)
        require_short(whole.seconds(0, (begun + steps) / music.steps_per_quarter) / 60)
    rows, first = [], chosen_seed(seed, temperature)
    for place, path in enumerate(_names(out, samples)):
        drawn = loaded.compose(steps=steps, seed=first + place, prompt=read, temperature=temperature)
        tune = Tune.of_frames(drawn, music)
        if prompt is not None:
            tune = prompt.followed_by(tune, begun / music.steps_per_quarter)
        (write_wav if suffix == ".wav" else write_tune)(path, tune, tempo)
        sounding = int(drawn.sum()) + (0 if read is None else int(read.sum()))
        length = begun + steps
        facts = {"steps": length, "notes": len(tune.notes), "notes_at_once": sounding / length, "seed": first + place}
        rows.append({"file": str(path), **facts})
    show.print_result(common.as_json, {**rows[0], "samples": rows}, notes=[_described(row) for row in rows])


def _names(out: Path, count: int) -> list[Path]:
    """The file, or several that are numbered from 1."""
    if count == 1:
        return [out]
    return [out.with_name(f"{out.stem}-{place}{out.suffix}") for place in range(1, count + 1)]


def _described(row: dict[str, Any]) -> str:
    average = f"{row['notes_at_once']:.1f} sounding at once on average"
    return f"{row['file']}: {row['steps']:,} steps, {row['notes']:,} notes, {average}"
