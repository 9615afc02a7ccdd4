"""The names that the package gives: each is there, and asking for the package alone is quick."""

import subprocess
import sys

import pytest

import elman


@pytest.mark.parametrize("name", elman.__all__)
def test_a_public_name_is_there(name):
    assert getattr(elman, name) is not None


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(AttributeError, match=r"module 'elman' has no attribute 'lstm'; it has .*LanguageModel"):
        elman.lstm  # noqa: B018


@pytest.mark.slow
def test_importing_the_package_does_not_wait_for_torch():
    code = "import sys, elman, elman.config, elman.config.toml; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
