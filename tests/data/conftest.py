from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ELMAN_CACHE", str(folder))
    return folder


@pytest.fixture
def corpus_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "animals"
    folder.mkdir()
    (folder / "train.txt").write_text("the cat sat\nthe dog sat\n\na cat ran\n")
    (folder / "valid.txt").write_text("the dog ran\n")
    (folder / "test.txt").write_text("a cat sat\n")
    return folder
