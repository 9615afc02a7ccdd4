"""The names that the package gives: each is there, and asking for the package alone is quick."""

import re
import subprocess
import sys

import pytest

import elman


def test_a_public_name_is_the_thing_of_that_name():
    """Defined in this package under the same name, and documented; the version is a number."""
    assert re.fullmatch(r"\d+(\.\d+)*(\.dev\d+)?(\+[a-z0-9.]+)?", elman.__version__)
    for name in set(elman.__all__) - {"__version__"}:
        found = getattr(elman, name)
        assert found.__name__ == name
        assert found.__module__.startswith("elman."), name
        assert found.__doc__, name
        assert getattr(sys.modules[found.__module__], name) is found, name


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(AttributeError, match=r"module 'elman' has no attribute 'lstm'; it has .*LanguageModel"):
        elman.lstm  # noqa: B018


@pytest.mark.slow
def test_importing_the_package_does_not_wait_for_torch():
    code = "import sys, elman, elman.config, elman.config.toml; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
