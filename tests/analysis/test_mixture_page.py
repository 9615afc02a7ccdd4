"""The page about a mixture: every cell has its words, and nothing of a text is markup."""

import numpy as np
import pytest

from elman.analysis import mixture
from elman.analysis.mixture import component_rows, read_mixture, write_mixture_page
from elman.data.text.vocabulary import Vocabulary
from support import networks

WORDS = ("<script>", "a&b", 'c"d', "e", "f", "g", "h")
TOKENS = np.array([0, 1, 2, 3, 0, 1])


@pytest.fixture
def reading():
    return read_mixture(networks.model("doc").eval(), TOKENS, 3)


def test_words_are_escaped_and_limited(reading, tmp_path):
    vocabulary = Vocabulary(WORDS, (1,) * len(WORDS))
    words = [WORDS[token] for token in TOKENS]
    page = write_mixture_page(tmp_path / "m.html", "a mixture", words, reading, vocabulary, 4)
    text = page.read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "<th>&lt;script&gt;</th>" in text
    assert "the first 4 of 6 tokens" in text
    assert text.count('title="layer ') == 4 * 5


@pytest.mark.parametrize("shown", [1, 2, 6])
def test_the_weights_of_every_word_are_as_wide(reading, tmp_path, monkeypatch, shown):
    """From half a place before it to half a place behind, which a single word has too."""
    drawn = []
    monkeypatch.setattr(mixture, "svg", lambda figure, *_: drawn.append(figure.axes[0]) or "")
    words = [WORDS[token] for token in TOKENS]
    write_mixture_page(tmp_path / "m.html", "m", words, reading, Vocabulary(WORDS, (1,) * len(WORDS)), shown)
    lowest, *_, highest = drawn[0].collections
    assert (drawn[0].get_xlim(), highest.get_paths()[0].get_extents().xmin) == ((-0.5, shown - 0.5), -0.5)
    assert highest.get_paths()[0].get_extents().xmax == shown - 0.5
    (first, *_) = reading.by_level.values()
    for place in range(shown):
        inside = [lowest.get_paths()[0].contains_point((place, first[place] * share)) for share in (0.98, 1.02)]
        assert inside == [True, False]


def test_a_row_a_component(reading):
    rows = component_rows([WORDS[token] for token in TOKENS], reading)
    assert [row[0] for row in rows] == ["layer 0.1", "layer 1.1", "layer 1.2", "layer 2.1", "layer 2.2"]
    assert sum(float(row[1].split()[0]) for row in rows) == pytest.approx(100, abs=0.3)
