"""Music without splits: what goes where depends on the content alone, and nothing is in two splits."""

import numpy as np
import pytest

from elman.errors import UserError
from elman.kinds.music.corpus import open_music
from elman.kinds.music.midi import write_midi
from elman.kinds.music.record import MusicReading

OPTIONS = MusicReading()


def piece(number, steps=10):
    roll = np.zeros((steps, 88), np.uint8)
    roll[np.arange(steps), (np.arange(steps) * (number + 1)) % 88] = 1
    return roll


def counts(corpus):
    return {name: len(pieces.lengths) for name, pieces in corpus.splits.items()}


def contents(corpus, name):
    pieces = corpus.split(name)
    return {part.tobytes() for part in np.split(pieces.frames, np.cumsum(pieces.lengths)[:-1])}


def test_a_flat_folder_is_divided_by_content(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    for number in range(20):
        write_midi(tmp_path / "one" / f"{number}.mid", piece(number), OPTIONS)
        write_midi(tmp_path / "two" / f"{97 - number}.MIDI", piece(number), OPTIONS)
    first, second = open_music(tmp_path / "one", OPTIONS), open_music(tmp_path / "two", OPTIONS)
    assert counts(first) == {"train": 16, "valid": 2, "test": 2}
    parts = [contents(first, name) for name in ("train", "valid", "test")]
    assert parts == [contents(second, name) for name in ("train", "valid", "test")]
    assert len(set.union(*parts)) == 20
    rule = "20 pieces ranked by the SHA-256 of their content, 80/10/10: train 16, valid 2, test 2"
    assert first.describe()["division"] == rule


def test_copies_count_once(tmp_path):
    for number in range(5):
        write_midi(tmp_path / f"{number}.mid", piece(number % 4), OPTIONS)
    corpus = open_music(tmp_path, OPTIONS)
    assert counts(corpus) == {"train": 2, "valid": 1, "test": 1}
    assert corpus.division.endswith("train 2, valid 1, test 1; 1 copy left out")


def test_one_piece_is_cut_in_time(tmp_path):
    write_midi(tmp_path / "a.mid", piece(3, steps=50), OPTIONS)
    corpus = open_music(tmp_path / "a.mid", OPTIONS)
    frames = [corpus.split(name).frames for name in ("train", "valid", "test")]
    assert [len(part) for part in frames] == [40, 5, 5]
    np.testing.assert_array_equal(np.concatenate(frames), piece(3, steps=50))
    assert corpus.division == "1 piece cut in time, 80/10/10: steps train 40, valid 5, test 5"
    write_midi(tmp_path / "b.mid", piece(4, steps=20), OPTIONS)
    assert counts(open_music(tmp_path, OPTIONS)) == {"train": 2, "valid": 2, "test": 2}


def test_what_cannot_be_divided_is_refused(tmp_path):
    write_midi(tmp_path / "short.mid", piece(0, steps=2), OPTIONS)
    with pytest.raises(UserError, match="2 steps, too few to be cut in three"):
        open_music(tmp_path / "short.mid", OPTIONS)
    (tmp_path / "novel.txt").write_text("It was the best of times")
    with pytest.raises(
        UserError, match=r"novel\.txt: not an \.npz or \.mat file of piano rolls, nor a MIDI file .* for text"
    ):
        open_music(tmp_path / "novel.txt", OPTIONS)
    (tmp_path / "short.mid").write_bytes(b"no music")
    with pytest.raises(UserError, match=r"short\.mid: not a readable MIDI file \(MThd not found\."):
        open_music(tmp_path / "short.mid", OPTIONS)


def test_splits_that_exist_are_kept(tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / split).mkdir()
        write_midi(tmp_path / split / "a.mid", piece(0), OPTIONS)
    corpus = open_music(tmp_path, OPTIONS)
    assert corpus.division is None
    assert "division" not in corpus.describe()


@pytest.mark.parametrize("missing", ["valid", "test"])
def test_a_third_split_is_held_out_of_the_training_pieces(tmp_path, missing):
    other = "test" if missing == "valid" else "valid"
    for split in ("train", other):
        (tmp_path / split).mkdir()
    for number in range(20):
        write_midi(tmp_path / "train" / f"{number}.mid", piece(number), OPTIONS)
    write_midi(tmp_path / "train" / "copy.mid", piece(7), OPTIONS)
    write_midi(tmp_path / other / "a.mid", piece(30), OPTIONS)
    corpus = open_music(tmp_path, OPTIONS)
    assert counts(corpus) == {"train": 18, "valid": 1, "test": 1} | {missing: 2}
    assert not contents(corpus, "train") & contents(corpus, missing)
    rule = f"no folder {missing}: a tenth of train is held out, by the SHA-256 of the content: train 18, {missing} 2"
    assert corpus.division == rule
    for file in list((tmp_path / "train").iterdir())[1:]:
        file.unlink()
    with pytest.raises(UserError, match=f"no folder {missing}, and one piece in train"):
        open_music(tmp_path, OPTIONS)


def test_train_alone_is_not_divided(tmp_path):
    (tmp_path / "train").mkdir()
    write_midi(tmp_path / "train" / "a.mid", piece(1), OPTIONS)
    with pytest.raises(UserError, match="valid: no MIDI files"):
        open_music(tmp_path, OPTIONS)
