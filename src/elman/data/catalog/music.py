"""What is known of the corpora of music that go by name."""

from urllib.parse import quote

from elman.config.text import TextOptions
from elman.data.catalog.texts import AS_PUBLISHED, Download, Entry

_HOME = "http://www-ens.iro.umontreal.ca/~boulanni"


def _piano_rolls(name: str, stem: str, what: str, licence: str, *, train: int, valid: int, test: int) -> Entry:
    """A set of Boulanger-Lewandowski, Bengio & Vincent (2012), with how many pieces each split has."""
    urls = tuple(f"{home}/{quote(stem)}.pickle" for home in (_HOME, _HOME.replace("www-ens", "www-etud")))
    return Entry(
        name=name,
        title=f"{what} as piano rolls (Boulanger-Lewandowski et al., 2012)",
        kind="music",
        licence=licence,
        homepage=f"{_HOME}/icml2012",
        split=AS_PUBLISHED,
        options=TextOptions(),
        published={"train": train, "valid": valid, "test": test},
        downloads=(Download(f"{stem}.pickle", urls),),
    )


PIANO_ROLLS = (
    _piano_rolls(
        "nottingham",
        "Nottingham",
        "Nottingham folk tunes",
        "folk tunes; the encodings are for research",
        train=694,
        valid=173,
        test=170,
    ),
    _piano_rolls(
        "jsb-chorales",
        "JSB Chorales",
        "382 of Bach's chorales",
        "public domain (J. S. Bach); the encodings are for research",
        train=229,
        valid=76,
        test=77,
    ),
    _piano_rolls(
        "musedata",
        "MuseData",
        "orchestral and piano music of the MuseData library",
        "see musedata.org; the encodings are for research",
        train=524,
        valid=135,
        test=124,
    ),
    _piano_rolls(
        "piano-midi",
        "Piano-midi.de",
        "classical piano music of piano-midi.de",
        "CC BY-SA (Bernd Krueger)",
        train=87,
        valid=12,
        test=25,
    ),
)

MUSIC = (
    Entry(
        name="bach-chorales",
        title="Bach's chorales as piano rolls, from the Python package `music21`",
        kind="music",
        licence="public domain (J. S. Bach); the package is BSD-3-Clause",
        homepage="https://www.music21.org/",
        split="files by name: of every ten, eight train, the ninth valid, the tenth test",
        options=TextOptions(),
        published={},
    ),
    *PIANO_ROLLS,
)
