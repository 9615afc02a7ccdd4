"""Tests of what only some systems have."""

import os

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="signals, permissions and shell scripts of POSIX")
