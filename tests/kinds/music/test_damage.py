"""Damaged MIDI files: what is not needed is read past and said, what is needed is missed and named."""

import io
import json
import random

import mido
import numpy as np
import pytest

from elman import config
from elman.cli import main
from elman.errors import UserError
from elman.formats import read_json
from elman.kinds.music.corpus import open_music
from elman.kinds.music.midi import read_tune
from elman.kinds.music.record import MusicOptions, MusicReading
from support.midi_bytes import END, chunk, header, meta, midi, note, notes
from support.music_runs import recipe

SCALE = [60, 62, 64, 65, 67, 69, 71, 72]
FIRST, SECOND = notes(SCALE), notes([pitch - 24 for pitch in SCALE])
"""Two tracks of eight notes."""

WHOLE = midi(FIRST, SECOND)
RIFF = b"RIFF" + (len(WHOLE) + 12).to_bytes(4, "little") + b"RMIDdata" + len(WHOLE).to_bytes(4, "little") + WHOLE


def two(first, second=b""):
    """A file whose first track is given as a chunk."""
    return header(2) + first + (second or chunk(b"MTrk", SECOND + END))


READ = {
    "key signature": (midi(meta(0x59, 9, 200) + FIRST, SECOND), ""),
    "key of one byte": (midi(meta(0x59, 0) + FIRST, SECOND), ""),
    "tempo of one byte": (midi(meta(0x51, 7) + FIRST, SECOND), ""),
    "controller": (midi(b"\0\xb0\7\x90" + FIRST, SECOND), "a value above 127"),
    "pitch wheel": (midi(b"\0\xe0\xff\xff" + FIRST, SECOND), "a value above 127"),
    "sysex": (midi(b"\0\xf0\3\xff\xff\xf7" + FIRST, SECOND), ""),
    "unknown meta": (midi(meta(0x6B, 255, 1) + FIRST, SECOND), ""),
    "unknown chunk": (two(chunk(b"XFIH", b"\0\1\2") + chunk(b"MTrk", FIRST + END)), "a chunk XFIH, which is no track"),
    "too short": (two(chunk(b"MTrk", FIRST + END, 20)), "a track of a wrong length"),
    "no length": (two(chunk(b"MTrk", FIRST + END, 0)), "a track of a wrong length"),
    "too long": (two(chunk(b"MTrk", FIRST + END, 5000)), "a track of a wrong length"),
    "longer by a few": (two(chunk(b"MTrk", FIRST + END, len(FIRST + END) + 3)), "a track of a wrong length"),
    "last too long": (header(2) + chunk(b"MTrk", FIRST + END) + chunk(b"MTrk", SECOND + END, 1 << 31), "wrong length"),
    "padded": (two(chunk(b"MTrk", FIRST + END + bytes(5))), "5 bytes that are in no track"),
    "notes after the end": (two(chunk(b"MTrk", FIRST[:32] + END + FIRST[32:])), "messages after the end of a track"),
    "no end": (two(chunk(b"MTrk", FIRST)), ""),
    "no end, bytes": (header(1) + chunk(b"MTrk", FIRST + SECOND) + b"\xf4\0\1", "3 bytes that are in no track"),
    "few tracks": (midi(FIRST, SECOND, count=1), "a count of tracks that is wrong (1; 2 are there)"),
    "no tracks": (midi(FIRST, SECOND, count=0), "a count of tracks that is wrong (0; 2 are there)"),
    "many tracks": (midi(FIRST, SECOND, count=7), "a count of tracks that is wrong (7; 2 are there)"),
    "header": (WHOLE[:4] + b"\0\0\1\6" + WHOLE[8:], "a header of a wrong length"),
    "long header": (WHOLE[:4] + b"\0\0\0\x0a" + WHOLE[8:14] + b"more" + WHOLE[14:], ""),
    "riff": (RIFF, ""),
    "riff and more": (RIFF + b"LIST\4\0\0\0INFO", ""),
    "file system": (bytes(128) + WHOLE, "128 bytes before the header"),
    "trailing": (WHOLE + b"some more", "9 bytes that are in no track"),
    "between tracks": (two(chunk(b"MTrk", FIRST + END) + b"\0\0\0"), "3 bytes that are in no track"),
    "running status": (
        midi(b"\0\x90\x3c\x50" + meta(1, 97) + b"\0\xf0\1\xf7" + b"\x60\x3c\0" + b"".join(
            bytes([0, pitch, 80, 96, pitch, 0]) for pitch in SCALE[1:]), SECOND),
        "a running status that continues after other messages"),
}  # fmt: skip
NAMED = {
    "cut": (WHOLE[:-9], "it ends too early"),
    "cut in a name": (WHOLE[: 14 + 4], "it ends too early"),
    "empty": (b"", "MThd not found"),
    "a page": (b"<!DOCTYPE html><title>404</title>", "MThd not found"),
    "pitch": (midi(b"\0\x90\xc8\x50" + FIRST), "data byte must be in range 0..127"),
    "status": (midi(b"\0\xf4" + FIRST), "undefined status byte 0xf4"),
    "no status": (midi(b"\0\x3c\x50" + FIRST), "running status without last_status"),
    "pause": (midi(b"\xff" * 5 + b"\0" + FIRST), "a pause of more than 268,435,455 ticks"),
    "no notes": (midi(meta(1, 97)), "an empty piece without a note"),
    "film": (midi(FIRST, division=0xE728), "film frames"),
    "one after another": (midi(FIRST, SECOND, kind=2), "type 2"),
}
TWELVE = {
    name: (READ | NAMED)[name][0]
    for name in (
        *("key signature", "controller", "unknown chunk", "too short", "last too long", "few tracks"),
        *("many tracks", "riff", "trailing", "cut", "a page", "status"),
    )
}


def struck(tune):
    return sorted((one.start, one.pitch) for one in tune.notes)


@pytest.mark.parametrize("name", READ)
def test_what_is_not_needed_is_read_past(tmp_path, name):
    """All sixteen notes are there, and what was passed over is said where it could have held some."""
    data, said = READ[name]
    (tmp_path / "a.mid").write_bytes(data)
    tune = read_tune(tmp_path / "a.mid")
    assert len(tune.notes) == 16
    assert sorted(one.pitch for one in tune.notes) == sorted([*SCALE, *(pitch - 24 for pitch in SCALE)])
    repairs = [what for what, _ in tune.repairs]
    assert (said in "; ".join(repairs)) if said else not repairs


@pytest.mark.parametrize("name", NAMED)
def test_what_is_needed_is_missed(tmp_path, name):
    data, reason = NAMED[name]
    (tmp_path / "a.mid").write_bytes(data)
    with pytest.raises(UserError) as error:
        read_tune(tmp_path / "a.mid").frames(MusicOptions(), str(tmp_path / "a.mid"))
    assert str(error.value).startswith(f"{tmp_path / 'a.mid'}: ")
    assert reason in str(error.value)


@pytest.fixture
def fifty(tmp_path):
    """A folder of fifty files of sixteen notes, of which twelve are damaged in twelve ways."""
    folder = tmp_path / "tunes"
    folder.mkdir()
    for place, data in enumerate(TWELVE.values()):
        (folder / f"damaged-{place:02}.mid").write_bytes(data)
    for place in range(38):
        second = notes([pitch - 24 for pitch in SCALE], 240 + 10 * place)
        (folder / f"whole-{place:02}.mid").write_bytes(midi(FIRST, second))
    return folder


def test_all_that_cannot_be_read_are_named_at_once(fifty, capsys):
    with pytest.raises(UserError) as error:
        open_music(fifty, MusicReading())
    assert str(error.value) == (
        f"{fifty}: 3 of 50 files of music cannot be read; repair or remove them, or leave them out with"
        " --skip-unreadable"
    )
    lines = [line for line in capsys.readouterr().err.splitlines() if "not a readable MIDI file" in line]
    assert [line.split(": ")[1] for line in lines] == [str(fifty / f"damaged-{place:02}.mid") for place in (9, 10, 11)]
    assert all(reason in line for reason, line in zip(("too early", "MThd not", "0xf4"), lines, strict=True))


def test_unreadable_files_are_left_out_and_the_rest_is_counted(fifty, capsys):
    corpus = open_music(fifty, MusicReading(skip_unreadable=True))
    assert [len(one.lengths) for one in corpus.splits.values()] == [37, 5, 5]
    assert corpus.facts()["unreadable"] == [f"damaged-{place:02}.mid" for place in (9, 10, 11)]
    said = capsys.readouterr().err
    assert f"{fifty}: 3 of 50 files of music cannot be read and are left out; 47 are read, 752 notes" in said
    assert said.count("left out: ") == 3
    for repair in ("a value above 127", "a chunk XFIH", "a count of tracks", "9 bytes that are in no track"):
        assert f"read past {repair}" in said
    assert "damaged-03.mid and 1 other file: read past a track of a wrong length" in said
    for file in ("damaged-09", "damaged-10", "damaged-11"):
        (fifty / f"{file}.mid").unlink()
    assert open_music(fifty, MusicReading()).digest == corpus.digest


def test_a_folder_in_which_nothing_can_be_read(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.mid").write_bytes(b"no music")
    with pytest.raises(UserError, match="that can be read"):
        open_music(tmp_path, MusicReading(skip_unreadable=True))
    for split in ("train", "valid", "test"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "a.mid").write_bytes(b"no music" if split == "test" else WHOLE)
    with pytest.raises(UserError, match=r"test: no MIDI files \(.mid, .midi\) that can be read"):
        open_music(tmp_path, MusicReading(skip_unreadable=True))


def test_a_run_remembers_what_it_left_out(fifty, tmp_path, capsys):
    file, run = tmp_path / "recipe.toml", tmp_path / "run"
    file.write_text(config.dump_recipe(recipe(epochs=1)))
    call = ["train", str(file), "--data", str(fifty), "--out", str(run)]
    assert main(call) == 2
    assert "3 of 50 files of music cannot be read" in capsys.readouterr().err
    assert not run.exists()
    assert main([*call, "--skip-unreadable"]) == 0
    assert f"use it: elman compose --out FILE.mid {run}\n" in capsys.readouterr().out
    assert "skip_unreadable = true" in (run / "recipe.toml").read_text()
    assert len(read_json(run / "data.json")["unreadable"]) == 3
    assert main(["evaluate", str(run), "--json"]) == 0
    assert main(["evaluate", str(run), "--data", str(fifty), "--json"]) == 0


def test_evaluation_leaves_out_on_demand(trained, fifty, capsys):
    call = ["evaluate", str(trained), "--data", str(fifty)]
    assert main(call) == 2
    assert "--skip-unreadable" in capsys.readouterr().err
    assert main([*call, "--skip-unreadable"]) == 0
    assert main([*call, "--skip-unreadable", "--method", "dynamic", "--lr", "0.01"]) in (0, 2)


def test_data_info_counts_what_would_be_read(fifty, capsys):
    call = ["data", "info", str(fifty)]
    assert main(call) == 2
    assert "3 of 50 files of music cannot be read" in capsys.readouterr().err
    assert main([*call, "--skip-unreadable", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["kind"], len(facts["unreadable"])) == ("music", 3)
    assert sum(split["pieces"] for split in facts["splits"].values()) == 47


def changed(data, draw):
    """Bytes of a file set at random, inserted, removed or cut off."""
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 2])):
        at = draw.randrange(len(data))
        kind = draw.choice("ssssssird")
        if kind == "s":
            data[at] = draw.randrange(256)
        elif kind == "i":
            data.insert(at, draw.randrange(256))
        elif kind == "r":
            del data[at]
        else:
            del data[at + 1 :]
    return bytes(data)


def by_mido(data):
    """Where mido reads all of a file without complaint, its notes, else None."""
    try:
        file = mido.MidiFile(file=io.BytesIO(data))
    except Exception:
        return None
    found = []
    for track in file.tracks:
        now = 0
        for message in track:
            now += message.time
            if message.type == "unknown_meta":  # of which mido takes the time before as 0
                return None
            if message.type == "note_on" and message.velocity and message.channel != 9:
                found.append((now / file.ticks_per_beat, message.note))
    return sorted(found)


def test_files_with_random_bytes_are_read_or_named_and_lose_nothing_in_silence(tmp_path):
    """What mido accepts has the same notes; what it rejects is refused too, or read past with a word."""
    draw, path = random.Random(66), tmp_path / "a.mid"
    sources = [WHOLE] * 20 + [data for data, _ in READ.values()]
    seen, refused = {"same": 0, "read past": 0}, []
    for _ in range(600):
        data = changed(draw.choice(sources), draw)
        path.write_bytes(data)
        expected = by_mido(data)
        try:
            tune = read_tune(path)
        except UserError as error:
            refused.append(str(error))
            continue
        if tune.repairs:
            seen["read past"] += 1
        elif expected is not None:
            seen["same"] += 1
            assert struck(tune) == expected
        assert np.isfinite(tune.end)
    assert min(*seen.values(), len(refused)) > 40
    assert all(line.startswith(f"{path}: ") and "\n" not in line for line in refused)


def test_whole_files_are_as_mido_reads_them(tmp_path):
    draw, path = random.Random(7), tmp_path / "a.mid"
    for _ in range(60):
        tracks = [
            b"".join(
                note(draw.randrange(60, 64), draw.choice([0, 1, 240, 3000]), channel=draw.choice([0, 1, 9]))
                for _ in range(draw.randrange(1, 20))
            )
            for _ in range(draw.randrange(1, 4))
        ]
        path.write_bytes(midi(*tracks, division=draw.choice([96, 480])))
        tune = read_tune(path)
        assert struck(tune) == by_mido(path.read_bytes())
        assert not tune.repairs
        assert tune.drums == sum(track.count(b"\x99") for track in tracks)
