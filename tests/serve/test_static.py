"""The page without a server: its graph is the model, its files are those of the page, its package is the right one."""

import json

import numpy as np
import pytest
import torch

pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
pytest.importorskip("onnxscript", reason="ONNX needs elman[onnx]")

import elman
from elman.analysis.mixture import components
from elman.cli import main
from elman.errors import UserError
from elman.export.step import Step
from elman.network.state import leaves
from elman.serve import static
from support.served import text_folder, text_recipe


def test_a_look_is_a_step_with_what_panels_show(tmp_path):
    run = elman.load(text_folder(tmp_path / "doc", text_recipe("doc")))
    step = Step(run.model)
    look = static.LookStep(step)
    symbols = torch.tensor([3, 5])
    state = tuple(one.repeat(2, 1) for one in step.beginning)
    with torch.no_grad():
        log_probs, levels, prior, each, *after = look(symbols, *state)
        expected, *next_state = step(symbols, *state)
        trace, _ = run.model.trace(symbols.unsqueeze(0), run.model.begin(2))
        weights, parts = components(run.model, trace)
    torch.testing.assert_close(log_probs, expected)
    torch.testing.assert_close(levels, torch.cat([one[0] for one in trace.raw], 1))
    torch.testing.assert_close(prior, weights.float())
    torch.testing.assert_close(each, parts.float())
    for one, other in zip(after, next_state, strict=True):
        torch.testing.assert_close(one, other)
    assert len(after) == len(list(leaves(run.model.begin(1))))


@pytest.mark.slow
def test_the_folder(tmp_path, monkeypatch):
    folder = text_folder(tmp_path / "doc", text_recipe("doc"))
    monkeypatch.setattr(static, "_write_runtime", lambda *_: None)
    made = static.export_web(elman.load(folder), tmp_path / "page", package=tmp_path / "package.tgz")
    assert made.difference < 1e-3
    assert made.difference_int8 < 1.5
    page = tmp_path / "page"
    index = (page / "index.html").read_text()
    assert "content-security-policy" in index
    assert "wasm-unsafe-eval" in index
    assert "local.js" in (page / "chosen.js").read_text()
    assert not (page / "server.js").exists()
    assert not list(page.glob("whole*"))
    facts = json.loads((page / "run.json").read_text())
    assert facts["component_layers"] == [1, 2, 2]
    assert set(facts["facts"]["panels"]) == {"score", "next", "generate", "states", "pairs", "components"}
    assert [len(basis["mean"]) for basis in facts["bases"]] == [6, 7, 6]
    axes = np.array(facts["bases"][2]["axes"])
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-4)


def test_another_package_is_refused(tmp_path):
    (tmp_path / "other.tgz").write_bytes(b"not the package")
    with pytest.raises(UserError, match=r"not onnxruntime-web .* \(its SHA-512 differs\)"):
        static._write_runtime(tmp_path, tmp_path / "other.tgz")


def test_without_npm_the_package_must_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UserError, match="there is no npm here; get it with `npm pack onnxruntime-web@"):
        static.fetched(lambda _: None)


def test_options_of_other_exports_do_not_belong_to_a_page(tmp_path, capsys):
    assert main(["export", str(tmp_path), "--to", "web", "--out", str(tmp_path / "out"), "--int8"]) == 2
    assert main(["export", str(tmp_path), "--to", "onnx", "--out", str(tmp_path / "out"), "--package", "x.tgz"]) == 2
    assert "--package belongs to --to web" in capsys.readouterr().err
