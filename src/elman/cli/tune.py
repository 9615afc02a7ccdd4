"""elman generate, for a run on music."""

import argparse

from elman.cli import options, show
from elman.errors import UserError

STEPS = 128

_OF_TEXT = ("prompt", "tokens", "top_k", "top_p", "unk", "state", "save_state", "raw")


def run(args: argparse.Namespace) -> int:
    """Draw a tune and write it as a MIDI file."""
    import numpy as np

    from elman.data.music.midi import read_midi, write_midi
    from elman.tasks.music.run import MusicRun

    options.require_none(args, _OF_TEXT, "a run on music")
    steps = STEPS if args.steps is None else args.steps
    options.at_least(1, "--steps", steps)
    options.at_least(0, "--temperature", args.temperature)
    tempo = 120.0 if args.tempo is None else args.tempo
    if not 4 <= tempo <= 1000:
        raise UserError(f"--tempo is {tempo:g}; it must be 4 to 1000 quarter notes a minute")
    if args.out is None:
        raise UserError("a run on music writes a MIDI file: give --out FILE, such as --out tune.mid")
    loaded = MusicRun(args.folder, options.use_machine(args))
    music = loaded.options
    prompt = None if args.prompt_midi is None else read_midi(args.prompt_midi, music)
    roll = loaded.compose(steps=steps, seed=args.seed or 0, prompt=prompt, temperature=args.temperature)
    if prompt is not None:
        roll = np.concatenate([prompt, roll])
    write_midi(args.out, roll, music, tempo)
    if args.json:
        show.print_json({"file": str(args.out), "steps": len(roll), "notes": int(roll.sum()), "seed": args.seed or 0})
    else:
        print(f"{args.out}: {len(roll):,} steps, {roll.sum() / len(roll):.1f} notes sounding at once on average")
    return 0
