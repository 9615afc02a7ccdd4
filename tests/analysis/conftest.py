import pytest


@pytest.fixture(autouse=True)
def _drawn(drawn):
    """Figures are drawn here."""
