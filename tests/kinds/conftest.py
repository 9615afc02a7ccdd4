import pytest


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    """Known corpora are prepared in a folder of the test."""
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
