"""Small MusicXML scores, for the tests of what reads them."""

import zipfile

CONTAINER = '<container><rootfiles><rootfile full-path="score.xml"/></rootfiles></container>'


def note(step, octave, duration, *more, alter=None):
    """A `<note>`; `more` stands first in it."""
    altered = "" if alter is None else f"<alter>{alter}</alter>"
    pitch = f"<pitch><step>{step}</step>{altered}<octave>{octave}</octave></pitch>"
    return f"<note>{''.join(more)}{pitch}<duration>{duration}</duration></note>"


def save(path, *parts, container=CONTAINER, packed=False):
    """Write a zipped score of these parts, each a string of measures."""
    score = "".join(f"<part>{measures}</part>" for measures in parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        archive.writestr("META-INF/container.xml", container)
        archive.writestr("score.xml", f"<score-partwise>{score}</score-partwise>")
    return path
