"""Music end to end: train, resume, evaluate, generate; every mistake in one line."""

import json
import re

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.cli import main
from elman.drawing import player
from elman.kinds.music.midi import read_tune, write_midi
from elman.kinds.music.pitches import Pitches
from elman.kinds.music.record import MusicData, MusicOptions
from elman.kinds.music.run import MusicRun
from elman.kinds.music.task import MusicTask
from elman.learning import checkpoint
from elman.learning.trainer import StopReason
from elman.report.page import write_report
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_run
from elman.tasks.text.run import TextRun
from support import text_runs
from support.commands import refusal
from support.interruption import StopAt
from support.music_runs import arrays, recipe, rolls
from support.music_xml import note, save
from support.text_runs import metrics

OPTIONS = MusicOptions(pitches=93)


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(config.dump_recipe(recipe()))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["bernoulli", "nade"])
def test_interrupted_run_is_the_same_run_bit_for_bit(choice, data, tmp_path):
    def run(out, stops):
        for resume, stop in enumerate([*stops, None]):
            experiment = Experiment(recipe(choice), out, data=data, resume=bool(resume))
            outcome = experiment.train([] if stop is None else [StopAt(stop)])
            assert outcome is (StopReason.FINISHED if stop is None else StopReason.INTERRUPTED)
        return out

    whole, broken = run(tmp_path / "whole", []), run(tmp_path / "broken", [3, 20, 21])
    for name in ("checkpoint.safetensors", "model.safetensors"):
        digests = {checkpoint.digest_of(checkpoint.load(out / name)[0]) for out in (whole, broken)}
        assert len(digests) == 1
    assert metrics(whole) == metrics(broken)


@pytest.mark.slow
def test_results_count_every_step_of_whole_pieces_and_it_has_learnt(trained):
    for row in json.loads((trained / "results.json").read_text()):
        assert row["tokens"] == len(arrays()[f"{row['split']}_roll"])
        assert row["nll"] < 3
        assert 0.5 < row["accuracy"] <= 1
    for sample in json.loads((trained / "samples.json").read_text()):
        roll = read_tune(trained / sample["text"]).frames(OPTIONS, "")
        assert [(np.flatnonzero(frame) + 1).tolist() for frame in roll] == sample["figure"]["roll"]


@pytest.mark.slow
def test_evaluate_does_not_depend_on_what_is_read_side_by_side(trained, capsys):
    found = []
    for streams in ("1", "2", "6"):
        assert main(["evaluate", str(trained), "--streams", streams, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["nll"] == pytest.approx(found[1]["nll"], rel=1e-6) == pytest.approx(found[2]["nll"], rel=1e-6)
    assert found[0]["tokens"] == found[1]["tokens"]
    assert found[0]["accuracy"] == found[1]["accuracy"] == found[2]["accuracy"]
    assert main(["evaluate", str(trained)]) == 0
    assert "nats/step" in capsys.readouterr().out


@pytest.mark.slow
def test_other_data_may_be_midi_files(trained, tmp_path, capsys):
    for split in ("train", "valid", "test"):
        (tmp_path / split).mkdir()
        write_midi(tmp_path / split / "a.mid", np.eye(93, dtype=np.uint8)[40:60], OPTIONS)
    assert main(["evaluate", str(trained), "--data", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == 20


@pytest.mark.slow
def test_info_describes_a_run_on_music(trained, capsys):
    assert main(["info", str(trained), "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["pitches"] == 93
    assert sum(info["blocks"].values()) == info["parameters"]


@pytest.mark.slow
def test_dry_run_and_init(trained, data, recipe_file, tmp_path, capsys):
    assert main(["train", str(recipe_file), "--data", str(data), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["minutes"] > 0
    experiment = Experiment(recipe(), tmp_path / "run", data=data, init=trained)
    for ours, theirs in zip(experiment.model.parameters(), MusicRun(trained).model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    line = refusal(capsys, "train", recipe_file, "--data", data, "--out", tmp_path / "x", "--init", trained, "--set",
                     "model.core.sizes=[13]")  # fmt: skip
    assert "its network differs" in line


@pytest.mark.slow
def test_each_kind_of_run_says_what_it_is(trained, capsys, tmp_path, data):
    assert isinstance(open_run(trained), MusicRun)
    for command in (["score", trained, trained / "recipe.toml"], ["evaluate", "--ensemble", trained, trained]):
        assert f"{trained} is a run on music, and this command needs a run on text" in refusal(capsys, *command)
    assert "--out is missing" in refusal(capsys, "compose", trained)
    assert f"`elman compose --out FILE.mid {trained}`" in refusal(capsys, "generate", trained, "--tokens", "9")
    assert f"`elman compose --out FILE.mid {trained}`" in refusal(capsys, "translate", trained, "--source", __file__)
    assert "--skip-first" in refusal(capsys, "evaluate", trained, "--skip-first")
    assert "--beam does not belong to a run on music" in refusal(capsys, "evaluate", trained, "--beam", "3")
    assert "--beam does not belong to --ensemble" in refusal(
        capsys, "evaluate", "--ensemble", trained, trained, "--beam", "3"
    )
    assert "no such file" in refusal(capsys, "compose", trained, "--out", "a.mid", "--prompt-midi", tmp_path / "b.mid")
    assert "--tempo is 0" in refusal(capsys, "compose", trained, "--out", "a.mid", "--tempo", "0")
    text = text_runs.write_corpus(tmp_path / "text")
    words = tmp_path / "words.toml"
    words.write_text(config.dump_recipe(text_runs.recipe(epochs=1)))
    assert main(["train", str(words), "--data", str(text), "--out", str(tmp_path / "words")]) == 0
    capsys.readouterr()
    assert "--steps is not an option" in refusal(capsys, "generate", tmp_path / "words", "--steps", "9")
    assert isinstance(open_run(tmp_path / "words"), type(TextRun(tmp_path / "words")))
    with pytest.raises(Exception, match="is a run on text; here a run on music is needed"):
        MusicRun(tmp_path / "words")


def midi_folder(folder):
    for split, count in (("train", 12), ("valid", 2), ("test", 2)):
        (folder / split).mkdir(parents=True)
        for seed in range(count):
            roll = Pitches(93).reform(rolls(1, seed)[0], Pitches(88), "toy")
            write_midi(folder / split / f"{seed}.mid", roll, OPTIONS)
    return str(folder)


def chorales(package, monkeypatch):
    (package / "music21" / "corpus" / "bach").mkdir(parents=True)
    (package / "music21" / "__init__.py").touch()
    for number in range(20):
        notes = "".join(note(step, 4, 1) + note("C", 3, 1, "<chord/>") for step in "CDEFGAB"[number % 7 :])
        save(package / "music21" / "corpus" / "bach" / f"{number:02}.mxl", f"<measure>{notes}</measure>")
    monkeypatch.syspath_prepend(package)
    monkeypatch.setenv("ELMAN_CACHE", str(package / "cache"))
    return "bach-chorales"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["midi", "chorales"])
def test_trains_on_midi_files_and_on_chorales(kind, tmp_path, monkeypatch, capsys):
    source = midi_folder(tmp_path / "tunes") if kind == "midi" else chorales(tmp_path / "site", monkeypatch)
    file, out = tmp_path / "recipe.toml", tmp_path / "run"
    file.write_text(config.dump_recipe(recipe(epochs=5)))
    assert main(["train", str(file), "--data", source, "--out", str(out)]) == 0
    assert checkpoint.load(out / "checkpoint.safetensors")[1]["progress"]["step"] >= 20
    assert (out / "report.html").read_text().count('class="roll"') == 2
    assert main(["compose", str(out), "--out", str(tmp_path / "tune.mid"), "--steps", "30"]) == 0
    assert len(read_tune(tmp_path / "tune.mid").frames(OPTIONS, "")) == 30
    capsys.readouterr()


def test_the_division_of_a_flat_folder_is_recorded_and_reported(tmp_path, capsys):
    for seed in range(12):
        roll = Pitches(93).reform(rolls(1, seed)[0], Pitches(88), "toy")
        write_midi(tmp_path / "tunes" / f"{seed}.mid", roll, OPTIONS)
    task = MusicTask(recipe(), str(tmp_path / "tunes"))
    task.write(tmp_path)
    rule = "8 pieces ranked by the SHA-256 of their content, 80/10/10: train 6, valid 1, test 1; 4 copies left out"
    assert f"divided: {rule}" in task.summary()
    assert json.loads((tmp_path / "data.json").read_text())["division"] == rule
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(recipe()))
    MusicRun(tmp_path).corpus(tmp_path / "tunes")
    assert capsys.readouterr().err.strip() == f"elman: {tmp_path / 'tunes'} is divided: {rule}"


@pytest.mark.slow
def test_stability_and_dynamics_of_a_run_on_music(trained, tmp_path, capsys):
    assert main(["analyze", "stability", str(trained), "--streams", "1", "--json"]) == 0
    assert [line["tier"] for line in json.loads(capsys.readouterr().out)["certificates"]] == [0, 1, 2, 3]
    assert "give longer --data" in refusal(capsys, "analyze", "stability", trained, "--streams", "9")
    page = tmp_path / "dynamics.html"
    assert main(["analyze", "dynamics", str(trained), "--trials", "3", "--steps", "20", "--out", str(page)]) == 0
    assert "Norm of the state after one random input" in page.read_text()
    capsys.readouterr()


def damaged(**changes):
    given = {**arrays(), **changes}
    return {key: array for key, array in given.items() if array is not None}


BAD = {
    "no array test_len": {"test_len": None},
    "valid_roll is uint8 [4, 87]": {"valid_roll": np.zeros((4, 87), np.uint8)},
    "it must hold zeros and ones": {"valid_roll": np.full((4, 88), 2, np.uint8)},
    "test_len is float64 [3]; it must be whole numbers": {"test_len": np.ones(3)},
    "test_len[1] is 0: an empty piece": {"test_len": np.array([4, 0, 1])},
    "train_len adds up to 7 steps, but train_roll has": {"train_len": np.array([3, 4])},
    "note 94 is outside the 93 pitches 1 to 93": {"test_roll": np.ones((2, 88), np.uint8), "test_len": np.array([2])},
    "fewer than training.batch_size = 4": {"train_roll": np.zeros((3, 88), np.uint8), "train_len": np.array([3])},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arrays(message, capsys, recipe_file, tmp_path):
    path = tmp_path / "bad.npz"
    np.savez(path, **damaged(**BAD[message]))
    assert message in refusal(capsys, "train", recipe_file, "--data", path, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_bad_sources(capsys, recipe_file, data, tmp_path):
    def line(source, *more):
        return refusal(capsys, "train", recipe_file, "--data", source, "--out", tmp_path / "run", *more)

    (tmp_path / "bad.npz").write_bytes(data.read_bytes()[:300])
    assert "not an .npz file" in line(tmp_path / "bad.npz")
    (tmp_path / "text.npz").write_text("words")
    assert "not an .npz file" in line(tmp_path / "text.npz")
    np.savez_compressed(tmp_path / "packed.npz", **arrays())
    whole = bytearray((tmp_path / "packed.npz").read_bytes())
    whole[120:140] = bytes(20)
    (tmp_path / "bad.npz").write_bytes(whole)
    assert "not an .npz file" in line(tmp_path / "bad.npz")
    np.save(tmp_path / "one.npy", np.zeros((3, 88), np.uint8))
    assert "looks like an array of numbers (.npy)" in line(tmp_path / "one.npy")
    np.savez(tmp_path / "objects.npz", train_roll=np.array([{}], dtype=object))
    assert "not an .npz file" in line(tmp_path / "objects.npz")
    assert "no such file or folder" in line(tmp_path / "none")
    assert "no MIDI files" in line(tmp_path)
    assert "not of music" in line("ptb")
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.mid").write_bytes(b"MThd")
    assert f"{tmp_path / 'train' / 'a.mid'}: not a readable MIDI file" in line(tmp_path)
    assert "set random = false" in line(data, "--set", "training.window.random=true")
    flat = ("--set", "model.output.choice={kind='flat'}")
    assert "model.encoder and model.output.choice do not fit together" in line(data, *flat)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_report_has_the_piano_rolls_of_the_samples(trained, tmp_path):
    page = write_report([trained], tmp_path / "page.html").read_text()
    assert page.count('class="roll"') == page.count('class="play"') == 2
    assert f"script-src '{player.POLICY}'" in page
    assert page.count("<script>") == 1
    assert player.SCRIPT in page
    assert "NLL against epochs" in page
    assert "validation<br>NLL" in page
    assert "frame accuracy" in page
    text = re.sub(r"<style.*?</style>|<pre.*?</pre>", "", page, flags=re.DOTALL)
    assert "erplexity" not in text
    assert MusicData.reporting.definition in page


def test_notes_begin_at_their_frequencies_where_the_recipe_asks(data, tmp_path):
    asked = {"output_bias": "unigram"}
    started = msgspec.structs.replace(
        (plain := recipe("bernoulli")),
        model=msgspec.structs.replace(plain.model, initialisation=config.Initialisation(**asked)),
    )
    model = Experiment(started, tmp_path / "run", data=data).model
    frames = arrays()["train_roll"]
    odds = (frames.sum(0) + 1) / (len(frames) - frames.sum(0) + 1)
    np.testing.assert_allclose(model.output.choice.bias[20:108].exp().detach().numpy(), odds[: 93 - 20], rtol=1e-5)


def test_baselines_of_notes_are_their_frequencies_and_those_after_themselves(data):
    task = MusicTask(recipe(), str(data))
    train, test = (task.corpus.split(name) for name in ("train", "test"))
    alone, held = task.baselines(None, ["test"])
    assert [alone.name, held.name] == ["notes' frequencies", "notes held"]
    chance = (train.frames.sum(0) + 1) / (len(train.frames) + 2)
    wanted = -np.log(np.where(test.frames == 1, chance, 1 - chance)).sum(1).mean()
    assert alone.nll == pytest.approx(wanted, abs=1e-6)
    counts, total, nll = np.ones((2, 2, task.corpus.options.pitches)), 0, 0.0
    for split, score in ((train, False), (test, True)):
        for piece in np.split(split.frames, np.cumsum(split.lengths)[:-1]):
            before = np.zeros_like(piece[0])
            for frame in piece:
                for pitch, (old, new) in enumerate(zip(before, frame, strict=True)):
                    if score:
                        nll -= np.log(counts[old, new, pitch] / counts[old, :, pitch].sum())
                    else:
                        counts[old, new, pitch] += 1
                before, total = frame, total + score
    assert held.nll == pytest.approx(nll / total, abs=1e-6)
    assert held.tokens == total == alone.tokens
    assert 0 <= min(alone.accuracy, held.accuracy) <= max(alone.accuracy, held.accuracy) <= 1
