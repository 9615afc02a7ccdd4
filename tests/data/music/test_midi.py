"""MIDI files and piano rolls."""

import io

import mido
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from elman.config.music import MusicOptions
from elman.data.music import events
from elman.data.music.events import Strike, Track
from elman.data.music.midi import read_midi, write_midi
from elman.data.music.pitches import Note, Pitches, quantise
from elman.errors import UserError

OPTIONS = MusicOptions(pitches=88, steps_per_quarter=4)


def complaint(path, options=OPTIONS):
    with pytest.raises(UserError) as error:
        read_midi(path, options)
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
    np.testing.assert_array_equal(read_midi(path, options), roll)


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
    roll = read_midi(path, OPTIONS)
    assert roll.shape == (6, 88)
    assert [np.flatnonzero(frame + 0).tolist() for frame in roll] == [[39], [39], [43], [], [], []]


def test_a_note_that_is_struck_again_or_never_ended(tmp_path):
    path = save(
        tmp_path / "a.mid", [("note_on", 0, 60, 90, 0), ("note_on", 0, 60, 90, 240), ("note_on", 0, 62, 90, 240)]
    )
    roll = read_midi(path, MusicOptions(steps_per_quarter=2))
    assert [np.flatnonzero(frame).tolist() for frame in roll] == [[39], [39], [41]]


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
    assert "type 2" in complaint(save(tmp_path / "two.mid", [], kind=2))
    long = save(tmp_path / "long.mid", [("note_on", 0, 60, 90, 0), ("note_off", 0, 60, 0, 2**27)], ticks=1)
    assert "a piece may have 1,000,000" in complaint(long)
    data = bytearray(whole.read_bytes())
    data[12:14] = b"\xe7\x28"
    bad.write_bytes(data)
    assert "film frames" in complaint(bad)


def test_every_truncation_and_flip_is_read_or_complained_about(tmp_path):
    whole = save(tmp_path / "a.mid", [("note_on", 0, 60, 90, 0), ("note_off", 0, 60, 0, 240)]).read_bytes()
    bad, draw = tmp_path / "bad.mid", np.random.default_rng(0)
    rolls, messages = [], []
    for number in range(300):
        data = bytearray(whole[: draw.integers(len(whole) + 1) if number % 2 else len(whole)])
        for at in draw.integers(max(1, len(data)), size=2):
            if len(data):
                data[at] = draw.integers(256)
        bad.write_bytes(data)
        try:
            rolls.append(read_midi(bad, OPTIONS))
        except UserError as error:
            messages.append(str(error))
    assert len(rolls) > 5
    assert all(roll.dtype == np.uint8 and roll.shape[1] == 88 and set(np.unique(roll)) == {0, 1} for roll in rolls)
    assert all(message.startswith(f"{bad}: ") and "\n" not in message for message in messages)


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
    st.just(mido.MetaMessage("lyrics", text="la", time=2)),
    st.just(mido.MetaMessage("set_tempo", tempo=400_000, time=0)),
)


@given(st.lists(st.lists(MESSAGES, max_size=30), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_the_bytes_are_read_as_mido_reads_them(tracks):
    file, buffer = mido.MidiFile(ticks_per_beat=96), io.BytesIO()
    file.tracks.extend(mido.MidiTrack(messages) for messages in tracks)
    file.save(file=buffer)
    found = events.decode(buffer.getvalue())
    again = mido.MidiFile(file=io.BytesIO(buffer.getvalue()))
    assert (found.kind, found.division) == (again.type, 96)
    for track, theirs in zip(found.tracks, again.tracks, strict=True):
        now, expected = 0, []
        for message in theirs:
            now += message.time
            if message.type in ("note_on", "note_off"):
                velocity = message.velocity if message.type == "note_on" else 0
                expected.append((now, message.channel, message.note, velocity))
        assert track.strikes == expected
        assert track.end == now
    tempos = [message.tempo for messages in tracks for message in messages if message.type == "set_tempo"]
    assert found.tempo == next(iter(tempos), None)


def test_a_number_of_many_bytes_and_a_long_pause():
    """A time of a thousand bytes is refused at once; a pause of more than four bytes is written in parts."""
    whole = events.encode([Strike(3, 0, 60, 80), Strike(2**30, 0, 60, 0)], 2**31, 480, 500_000)
    assert events.decode(whole).tracks == [Track([Strike(3, 0, 60, 80), Strike(2**30, 0, 60, 0)], 2**31)]
    assert sum(message.time for message in mido.MidiFile(file=io.BytesIO(whole)).tracks[0]) == 2**31
    for length in (5, 1000, 1_000_000):
        track = b"\xff" * (length - 1) + b"\x00\x90\x3c\x50"
        data = whole[:14] + b"MTrk" + len(track).to_bytes(4, "big") + track
        with pytest.raises(events.DamagedFileError, match="at byte 26: a number of more than 4 bytes"):
            events.decode(data)


@pytest.mark.parametrize(
    ("track", "problem"),
    [
        (b"\x00\x3c\x50", "at byte 23: data without a message"),
        (b"\x00\xf4\x50", "at byte 24: an unknown message"),
        (b"\x00\x90\x3c\x90", "at byte 26: a message is cut short by another"),
        (b"\x00\x90\x3c", "at byte 24: it ends too early"),
        (b"\x00\xff\x01\x7fla", "at byte 26: it ends too early"),
    ],
)
def test_damage_is_named_with_its_byte(track, problem):
    data = b"MThd\0\0\0\6\0\0\0\1\0\x60MTrk" + len(track).to_bytes(4, "big") + track
    with pytest.raises(events.DamagedFileError, match=problem):
        events.decode(data)
