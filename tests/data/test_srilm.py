"""SRILM's n-best lists."""

import gzip
import math

import pytest

from elman.data.hypotheses import Hypothesis, read_srilm
from elman.errors import UserError


def test_a_folder_of_plain_and_packed_files(tmp_path):
    (tmp_path / "u-2.nbest").write_text("-3 -2.5 2 <s> to be </s>\n-4 -1 1 be\n")
    with gzip.open(tmp_path / "u.1.score.gz", "wt") as file:
        file.write("-1 0 0\n\n-2 -1 2 or -pau- not\n")
    found = read_srilm(tmp_path)
    assert [(one.utterance, one.text) for one in found] == [
        ("u-2", "to be"),
        ("u-2", "be"),
        ("u.1", ""),
        ("u.1", "or not"),
    ]
    assert found[0].scores == pytest.approx((-3 * math.log(10), -2.5 * math.log(10)))
    names = tmp_path / "list"
    names.write_text(f"{tmp_path}/u.1.score.gz\n{tmp_path}/u-2.nbest\n")
    assert [one.utterance for one in read_srilm(names)] == ["u.1", "u.1", "u-2", "u-2"]


def test_bytelogs(tmp_path):
    """A bytelog is a logarithm to the base 1.0001 divided by 1024: log p = -1 nat is -9.77 of them."""
    (tmp_path / "u").write_text("NBestList1.0\n(-10) to be\n")
    (one,) = read_srilm(tmp_path)
    assert one == Hypothesis("u", (pytest.approx(-10 * 1024 * math.log(1.0001)),), "to be")
    assert one.scores[0] == pytest.approx(-1.024, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NBestList2.0\n(-10) to ( st: 0 )\n", "NBestList2.0; give NBestList1.0"),
        ("-1 -2\n", "u:1: expected ascore lscore nwords words, found '-1 -2'"),
        ("-1 nan 2 to be\n", "u:1: expected ascore"),
        ("NBestList1.0\n-1 to be\n", r"u:2: expected \(score\) words"),
        ("", "no hypothesis"),
    ],
)
def test_wrong_srilm_files_are_named(tmp_path, text, message):
    (tmp_path / "u").write_text(text)
    with pytest.raises(UserError, match=message):
        read_srilm(tmp_path)


def test_two_files_of_one_utterance_are_refused(tmp_path):
    for name in ("dev/u.nbest", "test/u.nbest"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("-1 -1 1 a\n")
    (tmp_path / "list").write_text(f"{tmp_path}/dev/u.nbest\n{tmp_path}/test/u.nbest\n")
    with pytest.raises(UserError, match=r"test/u\.nbest: the utterance u is also in .*dev/u\.nbest; give each"):
        read_srilm(tmp_path / "list")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_srilm(tmp_path / "none")
    (tmp_path / "u.gz").write_bytes(gzip.compress(b"-1 -1 1 a")[:-9])
    with pytest.raises(UserError, match="damaged gzip"):
        read_srilm(tmp_path)
    (tmp_path / "u.gz").write_bytes(gzip.compress(b"-1 -1 1 \xff"))
    with pytest.raises(UserError, match="not UTF-8 at byte 8"):
        read_srilm(tmp_path)
    (tmp_path / "u.gz").unlink()
    (tmp_path / "a").write_text("-1 -1 1 a\n")
    (tmp_path / "b").write_text("NBestList1.0\n(-1) a\n")
    with pytest.raises(UserError, match="b has another form of scores than a"):
        read_srilm(tmp_path)
