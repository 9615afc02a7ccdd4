"""elman compose: tunes as MIDI and sound, their seeds, and prompts that are kept as they were."""

import json
import re
import sys
import wave

import mido
import numpy as np
import pytest

from elman import config
from elman.cli import main
from elman.errors import UserError
from elman.kinds.music.midi import read_tune, write_tune
from elman.kinds.music.pitches import Note
from elman.kinds.music.record import MusicOptions
from elman.kinds.music.run import MusicRun
from elman.kinds.music.tune import Tune
from support.commands import refusal
from support.music_runs import recipe

OPTIONS = MusicOptions(pitches=93)


@pytest.mark.slow
def test_generate_writes_the_tune_of_its_seed(trained, tmp_path, capsys):
    out = tmp_path / "tune.mid"
    for seed in (0, 1, 0):
        assert (
            main(["compose", str(trained), "--out", str(out), "--steps", "40", "--seed", str(seed), "--tempo", "90"])
            == 0
        )
    np.testing.assert_array_equal(read_tune(out).frames(OPTIONS, ""), MusicRun(trained).compose(steps=40, seed=0))
    assert next(m.tempo for m in mido.MidiFile(out) if m.type == "set_tempo") == mido.bpm2tempo(90)
    longer = tmp_path / "longer.mid"
    assert (
        main(["compose", str(trained), "--out", str(longer), "--steps", "8", "--prompt-midi", str(out), "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["steps"] == 48
    np.testing.assert_array_equal(read_tune(longer).frames(OPTIONS, "")[:40], read_tune(out).frames(OPTIONS, ""))


@pytest.mark.slow
def test_a_prompt_is_read_as_it_was_drawn(trained):
    run = MusicRun(trained)
    cold = run.compose(steps=12, temperature=0)
    np.testing.assert_array_equal(run.compose(steps=5, temperature=0, prompt=cold[:7]), cold[7:])
    assert run.compose(steps=0).shape == (0, 93)
    with pytest.raises(UserError, match="--temperature is -1"):
        run.compose(steps=1, temperature=-1.0)
    assert not any(parameter.is_inference() for parameter in run.model.parameters()), "a tune leaves it trainable"


def test_compose_writes_what_the_name_says(trained, tmp_path, capsys):
    call = ["compose", str(trained), "--steps", "12", "--seed", "4", "--out"]
    assert main([*call, str(tmp_path / "tune.WAV"), "--tempo", "90"]) == 0
    with wave.open(str(tmp_path / "tune.WAV")) as file:
        assert file.getnframes() / file.getframerate() == pytest.approx(6 * 60 / 90 + 0.15, abs=0.01)
    assert main([*call, str(tmp_path / "tune.midi")]) == 0
    assert len(read_tune(tmp_path / "tune.midi").frames(OPTIONS, "")) == 12
    capsys.readouterr()
    for name in ("tune.png", "tune", "tune.mp3"):
        assert "MIDI (.mid, .midi) or sound (.wav)" in refusal(capsys, *call, tmp_path / name)
        assert not (tmp_path / name).exists()
    line = refusal(capsys, "compose", trained, "--out", tmp_path / "a.wav", "--steps", "9000")
    assert "a WAV file may have 20 minutes" in line


def test_sound_and_evaluation_need_no_mido(trained, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mido", None)
    call = ["compose", str(trained), "--steps", "12", "--seed", "4", "--out"]
    need = "MIDI files need the package mido: pip install 'elman[music]'"
    assert need in refusal(capsys, *call, tmp_path / "tune.mid")
    assert main([*call, str(tmp_path / "tune.wav")]) == 0
    assert main(["evaluate", str(trained)]) == 0
    capsys.readouterr()
    file = tmp_path / "recipe.toml"
    file.write_text(config.dump_recipe(recipe()))
    assert need in refusal(capsys, "train", file, "--data", data, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tunes_are_numbered_and_a_fresh_seed_is_printed(trained, tmp_path, capsys):
    call = ["compose", str(trained), "--steps", "10", "--out", str(tmp_path / "tune.mid")]
    assert main([*call, "--samples", "2", "--json"]) == 0
    captured = capsys.readouterr()
    rows, seed = json.loads(captured.out)["samples"], int(re.fullmatch(r"seed (\d+)\n", captured.err)[1])
    assert [row["seed"] for row in rows] == [seed, seed + 1]
    for number, row in enumerate(rows, start=1):
        assert row["file"] == str(tmp_path / f"tune-{number}.mid")
        expected = MusicRun(trained).compose(steps=10, seed=row["seed"])
        np.testing.assert_array_equal(read_tune(tmp_path / f"tune-{number}.mid").frames(OPTIONS, ""), expected)
        assert row["notes"] == len(read_tune(tmp_path / f"tune-{number}.mid").notes)
        assert row["notes_at_once"] == expected.sum() / 10


def test_a_prompt_keeps_its_strikes_and_its_tempo(trained, tmp_path, capsys):
    strikes = tuple(Note(step / 2, step / 2 + 0.4, 60, 99) for step in range(4))
    write_tune(tmp_path / "prompt.mid", Tune(strikes, 2.0, 480), 72)
    call = ["compose", str(trained), "--prompt-midi", str(tmp_path / "prompt.mid"), "--steps", "6", "--seed", "1"]
    assert main([*call, "--out", str(tmp_path / "whole.mid")]) == 0
    whole = read_tune(tmp_path / "whole.mid")
    assert whole.tempo == pytest.approx(72)
    np.testing.assert_allclose([note for note in whole.notes if note.start < 1.5], strikes[:-1], atol=1e-3)
    assert whole.end == 5
    capsys.readouterr()
