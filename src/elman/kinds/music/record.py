"""Music as data: polyphonic pieces, whose steps are frames of notes."""

from typing import Annotated, Literal

from msgspec import Meta

from elman.config.data import Data
from elman.config.record import Positive, Record, Reporting

OCTAVE = 12  # semitones


class MusicOptions(Record, frozen=True, kw_only=True):
    """How music becomes frames.

    `pitches` is P, the size of a frame: 88, the keys of a piano (A0, MIDI pitch 21, to C8, 108), or 93 (MIDI pitches 1
    to 93, index = pitch - 1). `steps_per_quarter`: per quarter note, in MIDI files that are read and written.
    """

    pitches: Literal[88, 93] = 88
    steps_per_quarter: Annotated[int, Meta(ge=1, le=96)] = 2


class MusicReading(MusicOptions, frozen=True, kw_only=True):
    """How music is read; `skip_unreadable`: files of MIDI or MusicXML that cannot be read are left out, and named."""

    skip_unreadable: bool = False


class MusicEvaluation(Record, frozen=True, kw_only=True):
    """How many validation pieces are read side by side, in windows of how many steps; no figure depends on it."""

    streams: Positive = 10
    length: Positive = 70


class MusicData(MusicReading, Data, frozen=True, kw_only=True, tag_field="kind", tag="music"):
    """Pieces of music as frames of notes; `corpus`: a known corpus, a file or a folder, unless --data names another.

    `transpose`: in every epoch each training piece is moved up or down by a random interval of at most this number of
    semitones, within the pitches; held-out pieces never are.
    """

    encoders = ("frames",)
    command = "compose --out FILE.mid"
    proposal = "elman.kinds.music.proposal"
    needs = "MIDI or MusicXML files, or an .npz or .mat file of piano rolls"
    task = "elman.kinds.music.task:MusicTask"
    reporting = Reporting(
        "NLL",
        "nll",
        "step",
        "NLL is the mean negative log-likelihood per time step over whole pieces, in nats.",
        ("accuracy", "frame accuracy"),
        (("pieces", "pieces"),),
        (
            ("nll", "nats/step", ".4f"),
            ("accuracy", "accuracy", ".4f"),
            ("tokens", "steps", ","),
            ("pieces", "pieces", ","),
        ),
    )

    transpose: Annotated[int, Meta(ge=0, le=OCTAVE)] = 0
    corpus: str | None = None
    digest: str | None = None
    evaluation: MusicEvaluation = MusicEvaluation()
