"""MIDI files and piano rolls."""

import sys

import mido
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from elman.errors import UserError
from elman.kinds.music.midi import MOST_TICKS, read_tune, write_midi, write_tune
from elman.kinds.music.pitches import Note, Pitches, quantise
from elman.kinds.music.record import MusicOptions
from elman.kinds.music.tune import Tune

OPTIONS = MusicOptions(pitches=88, steps_per_quarter=4)


def complaint(path, options=OPTIONS):
    with pytest.raises(UserError) as error:
        read_tune(path).frames(options, str(path))
    assert "\n" not in str(error.value)
    return str(error.value)


def save(path, *tracks, ticks=480, kind=1):
    file = mido.MidiFile(type=kind, ticks_per_beat=ticks)
    for messages in tracks:
        track = mido.MidiTrack(mido.Message(name, channel=channel, note=note, velocity=velocity, time=time)
                               for name, channel, note, velocity, time in messages)  # fmt: skip
        file.tracks.append(track)
    file.save(path)
    return path


def damaged(source, path, at, new):
    data = bytearray(source.read_bytes())
    data[at : at + len(new)] = new
    path.write_bytes(data)
    return path


@pytest.mark.slow
@given(
    arrays(np.uint8, st.tuples(st.integers(1, 20), st.just(93)), elements=st.integers(0, 1)),
    st.sampled_from([1, 2, 3, 96]),
)
def test_what_is_written_is_read_back(tmp_path_factory, roll, steps):
    options = MusicOptions(pitches=93, steps_per_quarter=steps)
    roll[0, 40] = 1
    path = tmp_path_factory.mktemp("midi") / "tune.mid"
    write_midi(path, roll, options)
    np.testing.assert_array_equal(read_tune(path).frames(options, ""), roll)


def test_tracks_and_channels_are_one_roll_without_drums(tmp_path):
    path = save(
        tmp_path / "a.mid",
        [
            ("note_on", 0, 60, 90, 0),
            ("note_off", 0, 60, 0, 240),
            ("note_on", 9, 36, 90, 0),
            ("note_off", 9, 36, 0, 480),
        ],
        [("note_on", 1, 64, 90, 240), ("note_on", 1, 64, 0, 120)],
    )
    roll = read_tune(path).frames(OPTIONS, "")
    assert roll.shape == (6, 88)
    assert [np.flatnonzero(frame + 0).tolist() for frame in roll] == [[39], [39], [43], [], [], []]


def test_drums_alone_are_named(tmp_path):
    path = save(tmp_path / "a.mid", [("note_on", 9, 36, 90, 0), ("note_off", 9, 36, 0, 480)])
    assert complaint(path) == f"{path}: drums alone (1 note), which are left out; give another"


def test_a_note_that_is_struck_again_or_never_ended(tmp_path):
    path = save(
        tmp_path / "a.mid", [("note_on", 0, 60, 90, 0), ("note_on", 0, 60, 90, 240), ("note_on", 0, 62, 90, 240)]
    )
    roll = read_tune(path).frames(MusicOptions(steps_per_quarter=2), "")
    assert [np.flatnonzero(frame).tolist() for frame in roll] == [[39], [39], [41]]


@pytest.mark.parametrize("again", [("note_off", 0, 60, 0, 0), ("note_on", 0, 60, 0, 0)])
def test_an_end_in_the_tick_of_the_next_beginning_is_that_of_the_note_before(tmp_path, again):
    path = save(
        tmp_path / "a.mid",
        [("note_on", 0, 60, 90, 0), ("note_on", 0, 60, 80, 480), again, ("note_off", 0, 60, 0, 960)],
    )
    assert [(note.start, note.end, note.velocity) for note in read_tune(path).notes] == [(0, 1, 90), (1, 3, 80)]


def test_a_note_of_no_length_ends_where_it_begins(tmp_path):
    path = save(tmp_path / "a.mid", [("note_on", 0, 60, 90, 0), ("note_off", 0, 60, 0, 0), ("note_on", 0, 62, 90, 480)])
    assert [(note.start, note.end) for note in read_tune(path).notes] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("times", "tempo"), [((480, 0), 60), ((0, 480), 150), ((96, 96), 150), ((9, None), 150)])
def test_the_tempo_that_comes_first_in_time(tmp_path, times, tempo):
    notes = [mido.Message("note_on", note=60, velocity=64), mido.Message("note_off", note=60, time=960)]
    tracks = [
        [*([] if at is None else [mido.MetaMessage("set_tempo", tempo=value, time=at)]), *notes]
        for at, value in zip(times, (400_000, 1_000_000), strict=True)
    ]
    mido.MidiFile(tracks=[mido.MidiTrack(messages) for messages in tracks]).save(tmp_path / "a.mid")
    assert read_tune(tmp_path / "a.mid").tempo == tempo


def test_rule_of_the_grid():
    """To the nearest step, halves upwards; one step at least; up to the end that is given."""
    notes = [Note(0.2, 0.3, 60), Note(0.25, 0.74, 62), Note(0.25, 0.75, 64)]
    roll = quantise(notes, 1.5, Pitches(88), 2, "x")
    assert roll[:, 39].tolist() == [1, 0, 0]
    assert roll[:, 41].tolist() == [0, 1, 0]
    assert roll[:, 43].tolist() == [0, 1, 0]


def test_frames_of_88_and_93_pitches_turn_into_each_other():
    wide = np.zeros((1, 88), np.uint8)
    wide[0, [0, 72]] = 1
    narrow = Pitches(93).reform(wide, Pitches(88), "x")
    assert np.flatnonzero(narrow[0]).tolist() == [20, 92]
    np.testing.assert_array_equal(Pitches(88).reform(narrow, Pitches(93), "x"), wide)
    wide[0, 73] = 1
    with pytest.raises(UserError, match="x: note 94 is outside the 93 pitches 1 to 93"):
        Pitches(93).reform(wide, Pitches(88), "x")


def test_unreadable_midi_files_are_named(tmp_path):
    bad = tmp_path / "bad.mid"
    bad.write_bytes(b"no music")
    assert "not a readable MIDI file" in complaint(bad)
    assert "no such file" in complaint(tmp_path / "none.mid")
    assert "not a readable MIDI file" in complaint(tmp_path)
    whole = save(tmp_path / "whole.mid", [("note_on", 0, 60, 90, 0), ("note_off", 0, 60, 0, 240)])
    bad.write_bytes(whole.read_bytes()[:-6])
    assert "not a readable MIDI file" in complaint(bad)
    assert "an empty piece" in complaint(save(tmp_path / "empty.mid", []))
    assert "an empty piece" in complaint(save(tmp_path / "none.mid"))
    low = save(tmp_path / "low.mid", [("note_on", 0, 5, 90, 0), ("note_off", 0, 5, 0, 240)])
    line = complaint(low)
    assert line == f"{low}: note 5 is outside the 88 pitches 21 to 108; transpose the music, or set data.pitches to 93"
    assert complaint(save(tmp_path / "zero.mid", [("note_on", 0, 0, 9, 0)])).endswith("to 108; transpose the music")
    assert "type 2 (tracks one after another)" in complaint(save(tmp_path / "two.mid", [], kind=2))
    assert "unknown type 7" in complaint(damaged(whole, tmp_path / "seven.mid", 9, b"\x07"))
    long = save(tmp_path / "long.mid", [("note_on", 0, 60, 90, 0), ("note_off", 0, 60, 0, 2**27)], ticks=1)
    assert "a piece may have 1,000,000" in complaint(long)
    assert "film frames" in complaint(damaged(whole, bad, 12, b"\xe7\x28"))
    assert "has 0 ticks per quarter note" in complaint(damaged(whole, bad, 12, b"\0\0"))


@pytest.mark.slow
def test_every_mutation_is_read_or_complained_about(tmp_path):
    """Bytes that are changed, cut, repeated or drawn out into long numbers."""
    whole = save(tmp_path / "a.mid", [("note_on", 0, 60, 90, 0), ("note_off", 0, 60, 0, 240)]).read_bytes()
    bad, draw = tmp_path / "bad.mid", np.random.default_rng(0)
    read, messages = 0, []
    for _ in range(3000):
        data = bytearray(whole)
        for at in draw.integers(len(data), size=draw.integers(1, 4)).tolist():
            length = int(draw.choice([1, 4, 5, 1000, 4095, 5000]))
            change = [bytes([draw.integers(256)]), b"", bytes([draw.choice([0x80, 0xFF])]) * length, data[at:] * 2]
            place = slice(at, len(data) if draw.random() < 0.1 else at + 1)
            data[place] = change[draw.choice(4, p=[0.7, 0.1, 0.1, 0.1])]
        bad.write_bytes(data)
        try:
            roll = read_tune(bad).frames(OPTIONS, str(bad))
            assert (roll.dtype, roll.shape[1], roll.max()) == (np.uint8, 88, 1)
            read += 1
        except UserError as error:
            messages.append(str(error))
    assert read > 5
    assert all(line.startswith(f"{bad}: ") and "\n" not in line and len(line) < 400 for line in messages)


MESSAGES = st.one_of(
    st.builds(
        lambda kind, channel, note, velocity, time: mido.Message(
            kind, channel=channel, note=note, velocity=velocity, time=time
        ),
        st.sampled_from(["note_on", "note_off"]),
        st.sampled_from([0, 1, 9]),
        st.integers(60, 63),
        st.sampled_from([0, 64, 127]),
        st.sampled_from([0, 1, 100, 20_000]),
    ),
    st.just(mido.Message("program_change", program=3, time=7)),
    st.just(mido.Message("pitchwheel", pitch=-300, time=0)),
    st.just(mido.Message("sysex", data=[1, 2, 3], time=5)),
    st.just(mido.UnknownMetaMessage(0x0A, data=[200], time=11)),
    st.just(mido.MetaMessage("lyrics", text="la", time=2)),
    st.just(mido.MetaMessage("set_tempo", tempo=400_000, time=0)),
)


@given(st.lists(st.lists(MESSAGES, max_size=30), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_all_notes_are_found_at_their_times(tmp_path_factory, tracks):
    """Also after messages that mido does not know and takes to follow without a pause."""
    path = tmp_path_factory.mktemp("midi") / "a.mid"
    file = mido.MidiFile(ticks_per_beat=96, tracks=[mido.MidiTrack(messages) for messages in tracks])
    file.save(path)
    tune = read_tune(path)
    expected = []
    for messages in tracks:
        now = 0
        for message in messages:
            now += message.time
            if message.type == "note_on" and message.velocity and message.channel != 9:
                expected.append((now / 96, message.note, message.velocity))
    assert sorted((note.start, note.pitch, note.velocity) for note in tune.notes) == sorted(expected)
    assert tune.end == max(sum(message.time for message in messages) for messages in tracks) / 96
    tempos = [message.tempo for messages in tracks for message in messages if message.type == "set_tempo"]
    assert tune.tempo == (150 if tempos else 120)


def write_track(path, track):
    path.write_bytes(b"MThd\0\0\0\6\0\0\0\1\0\x60MTrk" + len(track).to_bytes(4, "big") + track)
    return path


def test_a_pause_of_many_bytes(tmp_path):
    """A pause of a million bytes is refused at once; what is written for more than four bytes is read back."""
    tune = Tune((Note(0.5, 600_000.0, 60), Note(700_000.0, 700_001.0, 62)), 1_400_000.0, 480)
    write_tune(tmp_path / "a.mid", tune, 120)
    read = read_tune(tmp_path / "a.mid")
    assert (read.notes, read.end) == (tune.notes, tune.end)
    for length in (5, 1000, 1_000_000):
        path = write_track(tmp_path / "b.mid", b"\xff" * (length - 1) + b"\x00\x90\x3c\x50")
        line = complaint(path)
        problem = "a pause of more than 268,435,455 ticks"
        assert line == f"{path}: not a readable MIDI file ({problem}); give another"


@pytest.mark.parametrize(
    ("track", "problem"),
    [
        (b"\x00\x3c\x50", "running status without last_status"),
        (b"\x00\xf4\x50", "undefined status byte 0xf4"),
        (b"\x00\x90\x3c\x90", "data byte must be in range 0..127"),
        (b"\x00\x90\x3c", "it ends too early"),
        (b"\x00\xff\x01\x7fla", "it ends too early"),
        (b"\x00\xff\x01" + b"\xff" * 1000 + b"\x00", "a message of more than 268,435,455 bytes"),
        (b"\x00\xff\x01" + b"\xff" * 3000 + b"\x00", "a message of more than 268,435,455 bytes"),
    ],
)
def test_damage_is_named(tmp_path, track, problem):
    path = write_track(tmp_path / "a.mid", track)
    assert complaint(path) == f"{path}: not a readable MIDI file ({problem}); give another"


def test_the_shortest_note_that_is_written_has_a_tick(tmp_path):
    """Also where its end is not after its beginning."""
    for end in (1.0, 0.5, 1.0 + 1 / MOST_TICKS, 1.0 + 2 / MOST_TICKS):
        write_tune(tmp_path / "a.mid", Tune((Note(1.0, end, 60),), 2.0, MOST_TICKS), 120)
        (again,) = read_tune(tmp_path / "a.mid").notes
        assert again.start == 1.0
        assert (again.end - 1) * MOST_TICKS == pytest.approx(max(1, round((end - 1) * MOST_TICKS)))


def test_without_mido(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mido", None)
    need = "MIDI files need the package mido: pip install 'elman[music]'"
    assert len(read_tune(write_track(tmp_path / "a.mid", b"\x00\x90\x3c\x50\x60\x80\x3c\x00")).frames(OPTIONS, "")) == 4
    with pytest.raises(UserError) as error:
        write_tune(tmp_path / "a.mid", Tune((), 1.0, 2), 120)
    assert str(error.value) == need
