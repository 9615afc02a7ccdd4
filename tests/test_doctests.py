"""The examples in docstrings give what they show."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import elman

ROOT = Path(elman.__file__).parent
SHOWN = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
NAMES = [".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__") for path in SHOWN]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_show_what_is_printed(name):
    failed, tried = doctest.testmod(import_module(name), verbose=False)
    assert tried
    assert not failed
