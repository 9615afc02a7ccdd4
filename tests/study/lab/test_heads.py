"""Where heads look: on a machine whose heads are known, and as a command."""

import json

import pytest
import torch

from elman.cli import main
from elman.data.classic import TASKS
from elman.drawing.heat_map import draw_over_time
from elman.errors import UserError
from elman.network.cores.ntm import weights_over_time
from elman.study.lab.heads import Looks, look, machine_of, used_rows, verdict, write_heads
from elman.study.lab.networks import build_network
from support.networks import CORES

COPY = TASKS["copy"]


def test_weights_over_time_are_those_of_the_states():
    core = CORES["ntm-heads"]().eval()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    found = weights_over_time(core, x, core.begin(2))
    assert found.shape == (5, 2, 4, 4)
    for steps in (1, 4):
        _, (_, _, weights, _) = core(x[:steps], core.begin(2))
        torch.testing.assert_close(found[steps - 1], weights)


def looks_of(read, wrote, due):
    """Heads that look at one row at each step."""
    weights = torch.stack([torch.eye(4)[read], torch.eye(4)[wrote]], dim=1)
    bits = torch.ones(len(read), 2)
    return Looks(bits, bits, bits, weights, 1, torch.tensor(due), 0.25)


def test_what_is_read_is_compared_with_what_was_written():
    due = [False, False, True, True]
    looks = looks_of([0, 0, 1, 2], [1, 2, 3, 3], due)
    assert (looks.found, looks.largest) == (1.0, 1.0)
    assert looks_of([1, 2, 1, 3], [1, 2, 3, 3], due).found == 0.5
    assert "Error 0.25 over 4 steps. The largest weight of a head is 1.00" in verdict(looks)
    assert "in 100 % of the steps" in verdict(looks)


@pytest.mark.parametrize(
    ("used", "shown"),
    [
        ([2, 3], [2, 3]),
        ([6, 7, 0, 1], [6, 7, 0, 1]),
        ([5, 1], [5, 6, 7, 0, 1]),
        ([4], [4]),
        ([0, 7], [7, 0]),
        (range(8), [*range(8)]),
        ([], [*range(8)]),
    ],
)
def test_rows_beyond_the_longest_gap_of_the_ring_are_left_out(used, shown):
    weights = torch.full((2, 3, 8), 0.01)
    for place, row in enumerate(used):
        weights[place % 2, place % 3, row] = 0.5
    assert sorted(used_rows(weights)) == sorted(shown)
    assert used_rows(weights) == shown


def test_a_sequence_of_the_whole_span_is_looked_at():
    torch.manual_seed(0)
    model = build_network(COPY, "ntm", 4)
    looks = look(model, machine_of(model, "ntm"), COPY, 3, 0)
    assert looks.weights.shape == (7, 2, 128)
    torch.testing.assert_close(looks.weights.sum(-1), torch.ones(7, 2))
    assert looks.due.tolist() == [False] * 4 + [True] * 3
    assert not looks.answers[:4].any()
    assert 0.3 < looks.error < 0.7
    assert torch.equal(looks.targets[4:], looks.inputs[:3, :8])
    with pytest.raises(UserError, match="the cell lstm has no heads; use ntm"):
        machine_of(build_network(COPY, "lstm", 4), "lstm")


def test_the_page_draws_every_head(tmp_path):
    looks = looks_of([0, 0, 1, 2], [1, 2, 3, 3], [False, False, True, True])
    page = write_heads(tmp_path / "heads.html", looks, title="Heads", text=["About."]).read_text()
    assert page.count("<svg") == 5
    for name in ("head 1 that reads", "head 1 that writes", "answered", "About."):
        assert name in page
    without = write_heads(tmp_path / "heads.html", looks._replace(inputs=torch.ones(4), targets=torch.ones(4),
                                                                  answers=None), title="Heads", text=[])  # fmt: skip
    assert without.read_text().count("<svg") == 2


def test_numbers_over_time_are_bars():
    drawn = draw_over_time([[0.0, 1.0, 1.0], [0.5, 0.004, 2.0]], "numbers & time", 10, 5)
    assert drawn.count("<rect") == 1 + 1 + 2
    assert '<rect x="10" y="0" width="20" height="5" fill-opacity="1"/>' in drawn
    assert '<rect x="0" y="5" width="10" height="5" fill-opacity="0.5"/>' in drawn
    assert '<rect x="20" y="5" width="10" height="5" fill-opacity="1"/>' in drawn
    assert 'viewBox="0 0 30 10"' in drawn
    assert "numbers &amp; time" in drawn


@pytest.mark.slow
def test_heads_from_the_command_line(tmp_path, capsys):
    out = tmp_path / "heads.html"
    words = ["lab", "heads", "--task", "copy", "--span", "2", "--size", "4", "--budget", "0.1", "--out", str(out)]
    assert main([*words, "--tested", "3", "--json"]) == 0
    shown = capsys.readouterr()
    facts = json.loads(shown.out)
    assert (facts["tested"], facts["trial"]["span"], facts["solved"]) == (3, 2, False)
    assert "step 0: error" in shown.err
    assert "span 3" in out.read_text()
    for more, message in (
        (["--cell", "lstm"], "the cell lstm has no heads"),
        (["--tested", "20000"], "--tested is 20000; the task copy has spans from 1 to 10,000"),
        (["--task", "sorting"], "there is no task sorting"),
        (["--out", str(tmp_path)], "is a folder"),
    ):
        assert main([*words, *more]) == 2
        assert message in capsys.readouterr().err
