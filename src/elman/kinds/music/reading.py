"""Files of MIDI, MusicXML or ABC as piano rolls: which cannot be read, what a roll lacks, and which grid suits them."""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from elman.errors import UserError, counted, notice
from elman.kinds.music.looks import is_abc
from elman.kinds.music.midi import SUFFIXES as MIDI
from elman.kinds.music.midi import read_tune
from elman.kinds.music.notation import read_abc, require_music21, tunes_of
from elman.kinds.music.pianoroll import read_score
from elman.kinds.music.pitches import Roll
from elman.kinds.music.record import MusicReading
from elman.kinds.music.tune import Tune

GRIDS = (2, 3, 4, 6, 8, 12, 16, 24)  # steps per quarter note that are proposed, the first that fits
UNSUITED = 4  # steps per quarter note where none fits, as for music that was played freely
FITTING = 0.95  # the least share of onsets on the steps of a grid that fits
NEAR = 0.2  # how far from a step, in steps, an onset may be that is on it


SCORES = (".mxl", ".musicxml")  # the endings of the names of MusicXML files
SUFFIXES = (*MIDI, *SCORES, ".abc")


def readers(file: Path) -> dict[Path, Callable[[], Tune]]:
    """What reads the tunes of a file of MIDI, of MusicXML by its name, or of ABC notation, which may have several.

    They raise UserError where a tune cannot be read.
    """
    if file.suffix.lower() in SCORES:
        return {file: lambda: read_score(file)}
    if is_abc(file, head_of(file)):
        require_music21()  # said once, whatever number of tunes there is
        return {place: functools.partial(read_abc, place, text) for place, text in tunes_of(file).items()}
    return {file: lambda: read_tune(file)}


def head_of(path: Path) -> bytes:
    """The first bytes of a file of music; raises UserError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(1 << 12)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give another file of music") from None


class Onsets:
    """The places, in quarter notes, at which notes of some tunes begin, each once per tune."""

    def __init__(self) -> None:
        self.size, self.merged, self.off = 0, Counter[int](), Counter[int]()

    def add(self, tune: Tune, grids: Iterable[int] = GRIDS) -> None:
        """Count the onsets of a tune: `off` a grid, and `merged` by it with another one."""
        found = {note.start for note in tune.notes}
        self.size += len(found)
        for grid in grids:
            steps = {start: math.floor(start * grid + 0.5) for start in found}
            self.off[grid] += sum(abs(start * grid - step) > NEAR for start, step in steps.items())
            self.merged[grid] += len(found) - len(set(steps.values()))

    def fits(self, grid: int) -> bool:
        """Whether nearly all onsets are on the steps of a grid."""
        return self.off[grid] <= (1 - FITTING) * self.size

    @property
    def fitting(self) -> int | None:
        """The first of `GRIDS` that fits, if one does."""
        return next(filter(self.fits, GRIDS), None)

    def share_off(self, grid: int) -> str:
        """The share of the onsets that are between the steps of a grid, in words."""
        return f"{self.off[grid] / max(1, self.size):.1%} of {counted(self.size, 'onset')}"


def read_files(files: Sequence[Path], options: MusicReading, source: Path) -> tuple[dict[Path, Roll], list[Path]]:
    """The piano rolls of files of music, and those that are left out since they cannot be read.

    Each tune of a file with several has a name below the file's.

    What a roll has no place for, damage that was read past, and onsets between the steps are counted in notices.

    Raises UserError where files cannot be read, which notices name, and are not to be left out, or all are.
    """
    pieces, unreadable, kept = dict[Path, Roll](), dict[Path, str](), _Kept(options.steps_per_quarter)
    for file, read in (one for path in files for one in readers(path).items()):
        try:
            tune = read()
            pieces[file] = tune.frames(options, str(file))
        except UserError as error:
            unreadable[file] = str(error)
        else:
            kept.add(tune, file)
    if unreadable and len(unreadable) + len(pieces) == 1:
        raise UserError(*unreadable.values())
    for problem in unreadable.values():
        notice(f"{'left out: ' if options.skip_unreadable else ''}{problem}")
    what = "files of music" if len(pieces) + len(unreadable) == len(files) else "tunes"
    if unreadable:
        share = f"{len(unreadable):,} of {len(unreadable) + len(pieces):,} {what} cannot be read"
        if not options.skip_unreadable:
            raise UserError(f"{source}: {share}; repair or remove them, or leave them out with --skip-unreadable")
        notice(f"{source}: {share} and are left out; {len(pieces):,} are read, {counted(kept.notes, 'note')}")
    kept.say(source, len(pieces))
    return pieces, list(unreadable)


def read_prompt(path: Path, options: MusicReading) -> tuple[Tune, Roll]:
    """A tune that is continued, and its frames; what its continuation is written without is said in a notice.

    Raises UserError where it cannot be read.
    """
    tune = read_tune(path)
    roll, kept = tune.frames(options, str(path)), _Kept(options.steps_per_quarter)
    kept.add(tune, path, written=True)
    kept.say(path, 1)
    return tune, roll


class _Kept:
    """What was read of some files, and what was not."""

    def __init__(self, grid: int) -> None:
        self.grid, self.onsets, self.notes, self.drums = grid, Onsets(), 0, 0
        self.lost, self.repairs = Counter[str](), dict[str, list[Path]]()

    def add(self, tune: Tune, file: Path, *, written: bool = False) -> None:
        self.onsets.add(tune, {*GRIDS, self.grid})
        self.notes += len(tune.notes)
        self.drums += tune.drums
        self.lost.update(_unplaced(tune, written=written))
        for repair, _ in tune.repairs:
            self.repairs.setdefault(repair, []).append(file)

    def say(self, source: Path, files: int) -> None:
        for repair, found in self.repairs.items():
            others = f" and {counted(len(found) - 1, 'other file')}" if found[1:] else ""
            notice(f"{found[0]}{others}: read past {repair}")
        if self.drums:
            notice(f"{source}: {counted(self.drums, 'note')} of drums are left out, {self.notes:,} others read")
        if self.lost:
            of = {what: f" ({count:,} of {files:,} files)" if files > 1 else "" for what, count in self.lost.items()}
            parts = ", ".join(f"{what}{share}" for what, share in of.items())
            notice(f"{source}: a frame holds the notes that sound; left out are {parts}")
        if not self.onsets.fits(self.grid):
            better = self.onsets.fitting
            advice = "" if better is None else f"; data.steps_per_quarter = {better} suits them"
            notice(
                f"{source}: {self.onsets.share_off(self.grid)} fall between the steps, of which a quarter note has"
                f" {self.grid}, and {self.onsets.merged[self.grid]:,} coincide with others{advice}"
            )


def _unplaced(tune: Tune, *, written: bool) -> list[str]:
    """What a tune has, and a frame of notes, or a tune that is `written` as it was, has not, in words."""
    has = {
        "velocities": not written and len({note.velocity for note in tune.notes}) > 1,
        "changes of tempo": not written and len(tune.tempos) > 1,
        "metre": not written and any(metre != (4, 4) for _, metre in tune.metres),
        "instruments": any(tune.programs),
    }
    return [*(what for what, there in has.items() if there), *tune.dropped]
