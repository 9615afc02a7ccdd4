"""The shapes in the signatures of `elman.network`, checked at run time in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import elman

CHECKED = """
from jaxtyping import install_import_hook
install_import_hook("elman.network", "beartype.beartype")
import sys
import pytest
import torch
from elman import config
from elman.data.batches import Source
from elman.network.cells.cell import unroll
from support import networks, pair_networks

for name, cell in networks.CELLS.items():
    weights = networks.weights(cell)
    unroll(cell.step, weights, torch.randn(2, 2, 3).double(), networks.state(cell))
for core in networks.CORES.values():
    core = core()
    core(torch.randn(3, 2, 3).double(), core.begin(2))
for model in (
    *(networks.choice_model(choice, contexts) for choice in networks.CHOICES for contexts in networks.CONTEXTS),
    *(networks.music_model(choice=choice, pitches=5) for choice in ("bernoulli", "nade")),
):
    music = isinstance(model.encoder, sys.modules["elman.network.encoders.frames"].FramesEncoder)
    steps = torch.rand(3, 2, 5).round().double() if music else torch.randint(7, (3, 2))
    trace, state = model.trace(steps, model.begin(2))
    model.output.nll(model.output.contexts(trace), steps, torch.rand(3, 2).double())
    model.log_prob(steps, steps, state)
    model.sample(steps, state) if music else model.step(steps[0], state)
model = pair_networks.model()
model.log_prob_given(Source(torch.randint(5, (4, 2)), torch.ones(4, 2).bool()), *torch.randint(5, (2, 3, 2)))
model = networks.model()
with pytest.raises(Exception, match="(?i)type"):
    model.step(torch.randint(7, (3, 2)), model.begin(2))
"""


@pytest.mark.slow
def test_public_functions_return_the_shapes_that_they_declare():
    tests = Path(__file__).parents[1]
    paths = {"PYTHONPATH": os.pathsep.join((str(Path(elman.__file__).parents[1]), str(tests)))}
    ran = subprocess.run(
        [sys.executable, "-c", CHECKED], env=os.environ | paths, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
