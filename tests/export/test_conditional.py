"""A model of pairs as two graphs: sources of any length, every attention, and what cannot be a graph."""

import msgspec
import numpy as np
import pytest
import torch

pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
pytest.importorskip("onnxscript", reason="ONNX needs elman[onnx]")

from elman.errors import UserError
from elman.export.conditional import ConditionalGraphs, compare_conditional, write_conditional
from elman.export.onnx import write_int8
from elman.network.build import build_model
from support.pair_networks import EOS, model_recipe, without_attention

pytestmark = pytest.mark.slow

MODELS = {
    "input feeding": {"score": "general", "feed": "output", "width": 16},
    "additive": {"score": "additive", "feed": "context", "cell": {"kind": "gru"}, "source": {"start": "bridge"}},
}
PAIRS = [(np.array(source), [EOS, *target]) for source, target in [([3, 1, 4, 1, 5], [2, 7]), ([2], []), ([9, 8], [1])]]


def model_of(name):
    torch.manual_seed(4)
    if name == "without attention":
        model = without_attention(cell={"kind": "elman"})
    else:
        options = dict(MODELS[name])
        width = options.pop("width", 8)
        record = model_recipe(**options)
        core = msgspec.structs.replace(record.core, size=width)
        model = build_model(msgspec.structs.replace(record, core=core), 10, num_source=10)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.4)
    return model.eval()


@pytest.mark.parametrize("name", [*MODELS, "without attention"])
def test_both_graphs_are_the_model_for_sources_of_any_length(tmp_path, name):
    model = model_of(name)
    write_conditional(model, tmp_path, {})
    graphs = ConditionalGraphs(tmp_path, model)
    found = compare_conditional(model, graphs, PAIRS)
    assert found.difference < 1e-5
    assert found.tokens == 6
    if name == "input feeding":
        share_the_memory_of_their_source(graphs)
        (rounded := tmp_path / "rounded").mkdir()
        for path in tmp_path.glob("*.onnx"):
            write_int8(path, rounded / path.name)
        assert 1e-5 < compare_conditional(model, ConditionalGraphs(rounded, model), PAIRS).difference < 0.5


def share_the_memory_of_their_source(graphs):
    """Hypotheses side by side have the figures of each alone."""
    state = graphs.source(np.array([3, 1, 4]))
    changing, memory = state[: graphs.changing], state[graphs.changing :]
    together = graphs.target(np.array([2, 5, 2]), *(one.repeat(3, 0) for one in changing), *memory)
    alone = graphs.target(np.array([5]), *state)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one[1:2], other, atol=1e-6)
    np.testing.assert_allclose(together[1].sum(1), 1, atol=1e-6)


def test_a_memory_written_by_content_is_refused(tmp_path):
    record = model_recipe(source={"memories": [{"size": 8, "read": "content", "write": "content"}], "start": "bridge"})
    torch.manual_seed(0)
    with pytest.raises(UserError, match="cannot be written as ONNX: a memory that is read or written by content"):
        write_conditional(build_model(record, 10, num_source=10).eval(), tmp_path, {})
