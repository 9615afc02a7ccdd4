"""Parameters of which the quick run takes a part."""

import pytest

from elman.network.output.activation import ACTIVATIONS


def slow_except(quick, values):
    """The values for `parametrize`; those that are not `quick` are marked slow."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]


OUTPUT_FUNCTIONS = slow_except(("softmax", "sigsoftmax"), ACTIVATIONS)
