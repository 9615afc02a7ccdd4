"""The page without a server: its graph is the model, its files are those of the page, its package is the right one."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("onnxruntime", reason="ONNX needs elman[onnx]")
pytest.importorskip("onnxscript", reason="ONNX needs elman[onnx]")

import elman
from elman.analysis.mixture import components
from elman.cli import main
from elman.errors import UserError
from elman.export.step import Comparison, LookStep, Step
from elman.kinds.music import static as static_music
from elman.kinds.pairs import static as static_pairs
from elman.network.state import leaves
from elman.serve import static, static_graphs, static_text
from elman.serve.limits import Limits
from elman.serve.services import listed, serve_runs
from support.interruption import kill, killed
from support.served import music_folder, pairs_folder, text_folder, text_recipe


def test_a_look_is_a_step_with_what_panels_show(tmp_path):
    run = elman.load(text_folder(tmp_path / "doc", text_recipe("doc")))
    step = Step(run.model)
    look = LookStep(step)
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


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A page with a mixture, music and pairs; without the runtime."""
    root = tmp_path_factory.mktemp("runs")
    folders = [
        text_folder(root / "doc", text_recipe("doc")),
        music_folder(root / "tunes", "nade"),
        pairs_folder(root / "pairs"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(static, "write_runtime", lambda *_: None)
        made = static.export_web([elman.load(one) for one in folders], root / "page", package=root / "package.tgz")
    return root / "page", made


@pytest.mark.slow
def test_the_folder(exported):
    page, made = exported
    assert [one.name for one in made.models] == ["doc", "tunes", "pairs"]
    assert all(one.difference < 1e-3 and one.difference < one.difference_written < 1.5 for one in made.models)
    assert [one.compared for one in made.models] == [200, 200, 220]
    assert made.bytes == sum(path.stat().st_size for path in page.rglob("*") if path.is_file())
    index = (page / "index.html").read_text()
    assert "content-security-policy" in index
    assert "wasm-unsafe-eval" in index
    assert "local.js" in (page / "chosen.js").read_text()
    assert not (page / "server.js").exists()
    assert sorted(path.name for path in page.rglob("*.onnx")) == ["model.onnx"] * 2 + ["source.onnx", "target.onnx"]


@pytest.mark.slow
def test_what_the_page_knows_of_its_models(exported):
    page, _ = exported
    runs = json.loads((page / "runs.json").read_text())["runs"]
    panels = [set(one["facts"]["panels"]) for one in runs]
    text = {"score", "next", "generate", "states", "pairs", "neighbours"}
    assert panels == [text | {"components"}, {"score", "next", "generate"}, {"translate", "attention"}]
    assert [one["folder"] for one in runs] == ["model-1", "model-2", "model-3"]
    facts = json.loads((page / "model-1" / "model.json").read_text())
    assert facts["component_layers"] == [1, 2, 2]
    assert [len(basis["mean"]) for basis in facts["bases"]] == [6, 7, 6]
    axes = np.array(facts["bases"][2]["axes"])
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-4)
    assert (page / "model-1" / "vectors.bin").stat().st_size == facts["vectors"] * len(facts["words"])
    music = json.loads((page / "model-2" / "model.json").read_text())
    numbers = sum(math.prod(shape) for shape in music["choice"].values())
    assert (page / "model-2" / "choice.bin").stat().st_size == 4 * numbers


def test_word_vectors_of_eight_bits_keep_their_cosines():
    vectors = np.random.default_rng(0).standard_normal((50, 40)).astype(np.float32)
    vectors[3] = 0
    rounded = static_text.in_eight_bits(vectors).astype(np.float32)
    assert not rounded[3].any()
    norms = [np.linalg.norm(one, axis=1, keepdims=True) + 1e-9 for one in (vectors, rounded)]
    right, found = ((one / norm) @ (one / norm).T for one, norm in zip((vectors, rounded), norms, strict=True))
    np.testing.assert_allclose(found, right, atol=0.01)


def test_two_runs_on_text_are_compared(tmp_path):
    folders = [text_folder(tmp_path / name, text_recipe()) for name in ("one", "two")]
    services = serve_runs([elman.load(one) for one in (*folders, pairs_folder(tmp_path / "pairs"))], Limits())
    assert ["compare" in one.panels for one in listed(services)] == [True, True, False]


@pytest.mark.parametrize("int8", [False, True])
def test_a_graph_is_compared_before_it_is_rounded_and_after(tmp_path, monkeypatch, int8):
    (folder := tmp_path / "page").mkdir()
    monkeypatch.setattr(static_graphs, "write_int8", lambda path, out: out.write_text(f"rounded {path.read_text()}"))

    def differ(place):
        return Comparison(0.2 if "rounded" in (place / "model.onnx").read_text() else 1e-6, 50)

    found = static_graphs.write_graphs(
        folder, lambda place: (place / "model.onnx").write_text("graph"), differ, int8=int8
    )
    assert found == (1e-6, 0.2 if int8 else 1e-6, 50)
    assert [path.name for path in tmp_path.rglob("*.onnx")] == ["model.onnx"]
    with pytest.raises(UserError, match=r"the graph is not the model: they differ by 0\.2 nats; nothing was written"):
        static_graphs.write_graphs(
            folder, lambda place: (place / "model.onnx").write_text("rounded"), differ, int8=int8
        )


def test_pairs_are_compared_on_the_valid_split_or_on_twenty_random_ones(tmp_path, capsys, monkeypatch):
    run = elman.load(pairs_folder(tmp_path / "pairs"))
    drawn = static_pairs._pairs_of(run, None)
    assert "so random pairs are compared" in capsys.readouterr().err
    draw, end = np.random.default_rng(0), run.inputs.target.eos
    assert [len(source) for source, _ in drawn] == [1 + at % 12 for at in range(20)]
    for source, target in drawn:
        wanted = draw.integers(len(run.inputs.source), size=len(source))
        wanted = wanted[::-1] if run.options.reverse_source else wanted
        assert source.tolist() == wanted.tolist()
        assert target == [end, *draw.integers(len(run.inputs), size=10).tolist()]
    with pytest.raises(UserError):
        static_pairs._pairs_of(run, str(tmp_path / "none"))


def test_what_has_no_page_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(static, "write_runtime", lambda *_: None)
    with pytest.raises(UserError, match="draws notes by the choices bernoulli and nade, not by Linear"):
        static_music.arrays_of(torch.nn.Linear(2, 2))
    monkeypatch.setattr("elman.kinds.pairs.static.constraint_of", lambda *_: object())
    with pytest.raises(UserError, match=r"its targets are trees .* open it with `elman serve`"):
        static.export_web([elman.load(pairs_folder(tmp_path / "pairs"))], tmp_path / "page", package=tmp_path)
    assert not (tmp_path / "page").exists()


def test_another_package_is_refused(tmp_path):
    (tmp_path / "other.tgz").write_bytes(b"not the package")
    with pytest.raises(UserError, match=r"not onnxruntime-web .* \(its SHA-512 differs\)"):
        static.write_runtime(tmp_path, tmp_path / "other.tgz")


def test_without_npm_the_package_must_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UserError, match="there is no npm here; get it with `npm pack onnxruntime-web@"):
        static.fetched(lambda _: None)


def test_an_archive_that_a_killed_npm_began_is_not_used(tmp_path, monkeypatch):
    """npm writes the archive under its own name, piece by piece, into the folder that it is given."""
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: "npm")
    path = static.cached()

    def npm(end):
        def pack(command, **_):
            (Path(command[command.index("--pack-destination") + 1]) / path.name).write_text("half")
            end(Path(command[command.index("--pack-destination") + 1]) / path.name)

        return pack

    monkeypatch.setattr(static.subprocess, "run", npm(lambda _: kill()))
    killed(lambda: static.fetched(lambda _: None))
    assert not path.exists()
    monkeypatch.setattr(static.subprocess, "run", npm(lambda packed: packed.write_text("whole")))
    assert static.fetched(lambda _: None) == path
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_an_npm_that_packs_nothing_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: "npm")
    monkeypatch.setattr(static.subprocess, "run", lambda *_, **__: None)
    with pytest.raises(UserError, match=r"npm could not fetch onnxruntime-web .*; get it with `npm pack"):
        static.fetched(lambda _: None)
    assert not list((tmp_path / "npm").iterdir())


def test_options_of_other_exports_do_not_belong_to_a_page(tmp_path, capsys):
    assert main(["export", str(tmp_path), "--to", "web", "--out", str(tmp_path / "out"), "--int8"]) == 2
    assert main(["export", str(tmp_path), "--to", "onnx", "--out", str(tmp_path / "out"), "--package", "x.tgz"]) == 2
    assert "--package belongs to --to web" in capsys.readouterr().err
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "out"), "--float32"]) == 2
    assert "--float32 belongs to --to web" in capsys.readouterr().err
    assert main(["export", str(tmp_path), str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "--to onnx writes one run" in capsys.readouterr().err
