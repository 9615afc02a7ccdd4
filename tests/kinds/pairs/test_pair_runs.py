"""An experiment on pairs from files to targets: training, resuming, evaluating, searching, and what is refused."""

import dataclasses
import json
import re
import shutil

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.cli import main
from elman.config.inference import Beam
from elman.data import by_length as batches
from elman.data.batches import Source
from elman.decoding.beam import Hypothesis
from elman.errors import UserError
from elman.evaluation.result import result_of, written_by
from elman.kinds.pairs.evaluation import copied_words, evaluate_pairs, target_accuracy, target_log_probs
from elman.kinds.pairs.run import PairRun
from elman.kinds.pairs.task import PairTask
from elman.learning.trainer import StopReason
from elman.report.page import write_report
from elman.study.measures import NATS, TOKENS, run_by_block
from elman.tasks.experiment import Experiment
from elman.tasks.open import open_run
from elman.tasks.text.run import TextRun
from support.interruption import StopAt

RECIPE = """
title = "toy pairs"
seed = 3
[model]
encoder = { kind = "lookup", size = 16, dropout = 0.1 }
source = { encoder = { kind = "lookup", size = 16 }, stack = { sizes = [8], output_dropout = 0.1 } }
core = { kind = "attentive", stack = { sizes = [16], weight_drop = 0.1 }, feed = "output", output_dropout = 0.1 }
[model.output]
contexts = { kind = "mixture", heads = { 1 = 2, 2 = 2 }, size = 16 }
choice = { kind = "flat", tied = true }
[training]
epochs = 3
batch_size = 20
optimiser = { kind = "adam", lr = 0.01 }
clip = 1.0
log_every = 2
[data]
kind = "pairs"
valid = 20
test = 20
max_source = 8
min_count = 2
"""


def recipe(tmp_path, **training):
    (tmp_path / "toy.toml").write_text(RECIPE)
    settings = [f"training.{key}={value}" for key, value in training.items()]
    return config.load_recipe(tmp_path / "toy.toml", settings)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A file of lines `c a b TAB B A C`."""
    draw = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("pairs") / "toy.tsv"
    lines = [list(draw.choice(list("abcdefgh"), draw.integers(1, 7))) for _ in range(240)]
    path.write_text("".join(f"{' '.join(one)}\t{' '.join(one[::-1]).upper()}\n" for one in lines))
    return path


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    experiment = Experiment(recipe(folder), folder / "run", data=pairs)
    assert experiment.train() is StopReason.FINISHED
    experiment.finish()
    return folder / "run"


def records(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    return [
        {key: value for key, value in one.items() if key not in ("seconds", "tokens_per_s")}
        for one in told
        if one.get("event") != "resume"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("size", [{}, {"tokens_per_batch": 150}], ids=["pairs", "tokens"])
def test_a_resumed_run_on_pairs_is_the_same_run(pairs, tmp_path, size):
    """Stopped in the middle of an epoch and gone on with: the same losses to the last bit."""
    wanted = recipe(tmp_path, epochs=2, **size)
    whole = Experiment(wanted, tmp_path / "whole", data=pairs)
    whole.train()
    parted = Experiment(wanted, tmp_path / "parted", data=pairs)
    assert parted.train([StopAt(7)]) is StopReason.INTERRUPTED
    again = Experiment(wanted, tmp_path / "parted", resume=True)
    again.train()
    assert records(tmp_path / "parted") == records(tmp_path / "whole")
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert one.equal(other)


@pytest.mark.slow
def test_a_seed_decides_everything(pairs, tmp_path):
    for name, seed in (("one", 3), ("same", 3), ("other", 4)):
        wanted = msgspec.structs.replace(recipe(tmp_path, epochs=1), seed=seed)
        Experiment(wanted, tmp_path / name, data=pairs).train()
    assert records(tmp_path / "one") == records(tmp_path / "same") != records(tmp_path / "other")


@pytest.mark.slow
def test_targets_are_scored_one_by_one_in_their_order(trained):
    run = PairRun(trained)
    corpus = run.corpus()
    test = corpus.split("test")
    found = target_log_probs(run.model, corpus, test)
    for index in (0, 7, 19):
        batch = corpus.gather(test, [index])
        alone = run.model.log_prob_given(batch.source, batch.inputs, batch.targets).flatten()
        assert found[index] == pytest.approx(alone.detach().numpy(), abs=1e-5)
    score = evaluate_pairs(run.model, corpus, test)
    assert sum(map(len, found)) == score.count
    assert -sum(float(one.sum()) for one in found) == pytest.approx(score.nll_sum, rel=1e-5)
    by_block = run_by_block(trained, block=3, streams=1)
    assert by_block.figures == {TOKENS: score.count}
    assert sum(by_block.curves[NATS]) == pytest.approx(score.nll_sum, rel=1e-5)
    assert by_block.curves[NATS][0] == pytest.approx(-float(np.concatenate(found)[:3].sum()), rel=1e-5)


@pytest.mark.slow
@torch.inference_mode()
def test_the_accuracy_is_that_of_every_symbol_given_the_right_ones_before(trained, capsys):
    """One symbol after another by the model's single step; the run reports it."""
    run = PairRun(trained)
    corpus = run.corpus()
    test, target = corpus.split("test"), corpus.symbols.target
    right = count = 0
    for place in range(len(test)):
        state = run.model.read(corpus.gather(test, [place]).source)
        before = target.eos
        for symbol in [*test.target[place].tolist(), target.eos]:
            log_probs, state = run.model.step(torch.tensor([before]), state)
            right, count, before = right + int(log_probs.argmax() == symbol), count + 1, symbol
    assert target_accuracy(run.model, corpus, test) == right / count
    assert target_accuracy(run.model, corpus, test, batch_size=3) == right / count
    assert 0 < right < count
    assert json.loads((trained / "results.json").read_text())[-1]["accuracy"] == right / count
    assert main(["evaluate", str(trained)]) == 0
    assert f"{right / count:.4f}" in capsys.readouterr().out
    assert f"accuracy {100 * right / count:.1f}" in write_report([trained]).read_text().replace("&nbsp;", " ")


def test_a_curriculum_reads_pairs_in_the_order_of_the_file(pairs, tmp_path, monkeypatch):
    """With pools of two batches, the first two of every epoch have the first forty pairs."""
    monkeypatch.setattr(batches, "POOL", 2)
    shuffled = recipe(tmp_path)
    in_order = recipe(tmp_path, order="file")
    for wanted, same in ((in_order, True), (shuffled, False)):
        task = PairTask(wanted, str(pairs))
        windows, train = task.windows(None), task.corpus.split("train")
        for epoch in (0, 1):
            read = [windows.batch(span) for span in windows.spans(epoch)[:2]]
            found = [
                row[mask][:-1].tolist() for one in read for row, mask in zip(one.targets.T, one.mask.T, strict=True)
            ]
            first = [train.target[place].tolist() for place in range(40)]
            assert (sorted(found) == sorted(first)) == same


@pytest.mark.slow
def test_the_folder_of_a_run(trained, pairs):
    names = {path.name for path in trained.iterdir()}
    assert {"source-vocabulary.tsv", "target-vocabulary.tsv", "data.json", "results.json", "samples.json"} <= names
    results = json.loads((trained / "results.json").read_text())
    assert [(row["split"], row["pairs"]) for row in results] == [("valid", 20), ("test", 20)]
    run = open_run(trained)
    assert isinstance(run, PairRun)
    corpus = run.corpus()
    targets = corpus.split("test").target
    assert results[1]["tokens"] == sum(len(target) + 1 for target in targets)
    sample = json.loads((trained / "samples.json").read_text())[0]
    assert np.array(sample["attention"]["weights"]).shape == (
        len(sample["attention"]["target"]),
        len(sample["attention"]["source"]),
    )
    page = write_report([trained]).read_text()
    assert page.count('class="attention"') == 1
    assert "reference:" in page
    written = results[1]["output"]
    for name, value, simple in (
        (one["name"], one["value"], other["value"])
        for one, other in zip(written["measures"], written["baseline"], strict=True)
    ):
        assert re.search(rf">{name}</th>\s*<td>{value:.2f}</td>.*\s*<td>{simple:.2f}</td>", page)


@pytest.mark.slow
def test_the_nll_is_that_of_each_pair_alone(trained):
    run = PairRun(trained)
    corpus = run.corpus()
    pairs, total = corpus.split("valid"), 0.0
    for index in range(len(pairs)):
        one = corpus.gather(pairs, [index])
        total -= run.model.log_prob_given(one.source, one.inputs, one.targets).sum().item()
    results = json.loads((trained / "results.json").read_text())
    assert results[0]["nll"] * results[0]["tokens"] == pytest.approx(total, rel=1e-5)


def test_lines_are_translated_in_order_and_as_alone(trained):
    run = PairRun(trained)
    lines = ["a b c", "", "d e", "a a a a a a a"]
    found = run.translate(lines, batch_size=2)
    assert [bool(candidates) for candidates in found] == [True, False, True, True]
    assert found[0][0].source == ["a", "b", "c"]
    assert [one[0].text for one in found if one] == [run.translate([line])[0][0].text for line in lines if line]


def test_an_unknown_word_may_be_copied(trained):
    """A model that always writes <unk> and ends at the limit: the word that is looked at most stands in its place."""
    run = PairRun(trained)
    run.model.output.choice.bias.data[run.inputs.target.unk] = 50.0
    (plain,) = run.translate(["a zz b"], Beam(size=1, max_length=2), unknown=True)
    (copied,) = run.translate(["a zz b"], Beam(size=1, max_length=2), copy=True)
    assert plain[0].words == ["<unk>", "<unk>"]
    looked = [["a", "zz", "b"][place] for place in copied[0].attention.argmax(1)]
    assert copied[0].words == looked[:2]
    assert "<unk>" not in run.translate(["a zz b"], Beam(max_length=2))[0][0].words


@pytest.mark.parametrize("backwards", [False, True])
def test_a_copied_word_is_the_one_in_the_order_of_the_text(trained, backwards):
    symbols = PairRun(trained).inputs
    symbols = dataclasses.replace(symbols, options=msgspec.structs.replace(symbols.options, reverse_source=backwards))
    unk, known = symbols.target.unk, symbols.target.unk - 1
    looks = np.array([[0.7, 0.2, 0.1], [1, 0, 0], [0.1, 0.6, 0.3], [0, 0, 1]], dtype=np.float32)
    found = Hypothesis([unk, known, unk], -1.0, -1.0, looks)
    expected = ["x", "y", "z"][::-1] if backwards else ["x", "y", "z"]
    assert copied_words(found, ["x", "y", "z"], symbols) == [
        expected[0],
        symbols.target.words[known],
        expected[1],
    ]


@pytest.mark.slow
def test_attention_is_told_in_the_order_of_the_text(pairs, tmp_path):
    """Read backwards, the weights still stand under the words as written."""
    backwards = recipe(tmp_path, epochs=1)
    data = msgspec.structs.replace(backwards.data, reverse_source=True)
    Experiment(msgspec.structs.replace(backwards, data=data), tmp_path / "run", data=pairs).train()
    run = PairRun(tmp_path / "run")
    one = run.translate(["a b c d"])[0][0]
    ids = np.array([run.inputs.source.ids[word] for word in "dcba"])
    source = Source(torch.from_numpy(ids).unsqueeze(1), torch.ones(4, 1, dtype=torch.bool))
    inputs = torch.tensor([[run.inputs.target.eos], *([symbol] for symbol in run.inputs.target.encode(one.words))])
    trace, _ = run.model.trace(inputs, run.model.read(source))
    np.testing.assert_allclose(trace.attention[:, 0].flip(-1).detach().numpy(), one.attention, atol=1e-5)


@pytest.mark.slow
def test_generate_prints_a_line_for_a_line(trained, tmp_path, capsys):
    source = tmp_path / "source.txt"
    source.write_text("a b c\n\nd e\n")
    assert main(["translate", str(trained), "--source", str(source)]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 3
    assert told.out.splitlines()[1] == ""
    assert "1 of 3 lines is blank and not read" in told.err
    out = tmp_path / "targets.txt"
    assert main(["translate", str(trained), "--source", str(source), "--out", str(out), "--batch-size", "1"]) == 0
    assert out.read_text() == told.out
    capsys.readouterr()
    assert main(["translate", str(trained), "--source", str(source), "--beam", "3", "--nbest", "2"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["3", "1"], ["3", "2"]]
    assert main(["translate", str(trained), "--source", str(source), "--nbest", "2", "--json"]) == 0
    assert [len(one["targets"]) for one in json.loads(capsys.readouterr().out)] == [2, 0, 2]


def test_line_breaks_of_windows_are_no_part_of_a_source(trained, tmp_path, capsys):
    source = tmp_path / "source.txt"
    source.write_bytes(b"a b c\r\n\r\nd e\r\n")
    assert main(["translate", str(trained), "--source", str(source), "--json"]) == 0
    assert [one["source"] for one in json.loads(capsys.readouterr().out)] == ["a b c", "", "d e"]


LINES = "a b c\n\na a a a a a a a a\nyy zz\na zz\n"
"""A source, a blank line, a source that is too long, an unknown one, and one of which a word is unknown."""


def test_sources_that_cannot_be_read_have_a_blank_target(trained, tmp_path, capsys):
    source, out = tmp_path / "source.txt", tmp_path / "out.json"
    source.write_text(LINES)
    command = ["translate", str(trained), "--source", str(source)]
    assert main(command) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 5
    assert told.out.splitlines()[1:4] == ["", "", ""]
    blank, unread, unknown = (line.replace(f"{source}: ", "") for line in told.err.splitlines())
    assert blank == "1 of 5 lines is blank and not read"
    assert unread == (
        "2 of 4 sources not read, with a blank target: 1 longer than 8 symbols (data.max_source), 1 without a symbol of"
        " the source vocabulary (tokenisation = words); the first in line 3"
    )
    assert unknown == "1 of 5 words (20.0 %) is not in the vocabulary, read as <unk>: zz"
    assert main([*command, "--nbest", "1"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["1", "5"]
    assert main([*command, "--json", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 5 lines\n"
    rows = json.loads(out.read_text())
    assert [len(row["targets"]) for row in rows] == [1, 0, 0, 0, 1]
    assert ["unread" in row for row in rows] == [False, False, True, True, False]
    assert "source.txt:3: a source of 9 symbols, the limit is 8" in rows[2]["unread"]


def test_sources_are_refused_unless_a_reader_leaves_them_out(trained):
    run, lines = PairRun(trained), LINES.splitlines()
    for given, message in ((lines, "text:3: a source of 9 symbols"), (lines[3:], "text:1: none of the 2 symbols")):
        with pytest.raises(UserError, match=message):
            run.translate(given, name="text")
    reader = run.reader("text", leave_out=True)
    assert [len(one) for one in run.translate(lines, reader=reader)] == [1, 0, 0, 0, 1]
    assert [*reader.unread] == [2, 3]


def test_generate_writes_heat_maps_beside_the_targets(trained, tmp_path, capsys):
    source, page = tmp_path / "source.txt", tmp_path / "looks.html"
    source.write_text("a b c\n\nd e\n")
    assert main(["translate", str(trained), "--source", str(source), "--attention", str(page)]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 3
    assert "looks.html" in told.err.replace("\n", "")
    assert page.read_text().count('class="attention"') == 2
    assert main(["translate", str(trained), "--source", str(source), "--attention", str(tmp_path)]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "output",
    [
        'activation = "sigsoftmax"',
        'contexts = { kind = "mixture", heads = { 2 = 2 }, size = 16 }',
        'contexts = { kind = "mixture", heads = { 2 = 2 }, size = 16 }\nactivation = "sigsoftmax"',
        'contexts = { kind = "mixture", heads = { 0 = 1, 1 = 2, 2 = 2 }, size = 16 }',
        'choice = { kind = "adaptive", cutoffs = [3, 6] }',
        'choice = { kind = "tree" }',
    ],
    ids=["sigsoftmax", "mos", "moss", "doc", "adaptive", "tree"],
)
def test_any_output_by_its_recipe(pairs, tmp_path, output):
    """Over the attention layer, the layer below and the vectors: the loss is that of one pair after another."""
    begun, after = RECIPE.split("[model.output]")
    (tmp_path / "toy.toml").write_text(f"{begun}[model.output]\n{output}\n[training]{after.split('[training]')[1]}")
    experiment = Experiment(config.load_recipe(tmp_path / "toy.toml"), tmp_path / "run", data=pairs)
    model, task = experiment.model.eval(), experiment.task
    split, end = task.corpus.split("valid"), task.inputs.target.eos
    total, count = 0.0, 0
    for source, target in zip(split.source, split.target, strict=True):
        with torch.inference_mode():
            state = model.read(Source(source[:, None], torch.ones(len(source), 1, dtype=torch.bool)))
            log_probs, _ = model.log_probs(torch.cat([torch.tensor([end]), target])[:, None], state)
        wanted = [*target.tolist(), end]
        total -= log_probs[range(len(wanted)), 0, wanted].sum().item()
        count += len(wanted)
    found = task.validate(model).nll
    assert found == pytest.approx(total / count, rel=1e-5)
    assert found == pytest.approx(np.log(len(task.inputs)), rel=0.07)


@pytest.mark.slow
def test_subwords_from_training_to_targets(pairs, tmp_path, capsys):
    """The output is the text that pieces spell, and what is generated again is the same."""
    pytest.importorskip("sentencepiece")
    settings = ['data.tokenisation="subwords"', "data.subwords.size=300", "data.min_count=1"]
    recipe(tmp_path)
    wanted = config.load_recipe(tmp_path / "toy.toml", [*settings, "data.max_source=40", "training.epochs=1"])
    experiment = Experiment(wanted, tmp_path / "run", data=pairs)
    experiment.train()
    experiment.finish()
    output, right = ((tmp_path / "run" / f"{name}-test.txt").read_text() for name in ("output", "reference"))
    held = experiment.task.corpus.split("test")
    assert right.splitlines() == held.target_text
    assert len(output.splitlines()) == len(held)
    (tmp_path / "source.txt").write_text("".join(f"{line}\n" for line in held.source_text))
    arguments = ["--source", str(tmp_path / "source.txt"), "--max-length", str(wanted.data.max_target)]
    assert main(["translate", str(tmp_path / "run"), *arguments]) == 0
    assert capsys.readouterr().out == output


def test_analyze_attention_writes_a_page(trained, tmp_path, capsys):
    source = tmp_path / "source.txt"
    source.write_text("a b c\n\nd <e\n")
    assert main(["analyze", "attention", str(trained), "--source", str(source), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["source"] for one in told["pairs"]] == [["a", "b", "c"], ["d", "<e"]]
    page = (trained / "attention.html").read_text()
    assert page.count('class="attention"') == 2
    assert "&lt;e" in page


@pytest.mark.slow
def test_evaluate_and_info_know_the_run(trained, capsys):
    assert main(["evaluate", str(trained), "--split", "valid", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["nll"] == pytest.approx(json.loads((trained / "results.json").read_text())[0]["nll"])
    assert main(["info", str(trained), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["vocabulary"] == len(PairRun(trained).inputs.target)


def test_dry_run_of_pairs_gives_the_cost(pairs, tmp_path, capsys):
    recipe(tmp_path)
    assert main(["train", str(tmp_path / "toy.toml"), "--data", str(pairs), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tokens_per_s"] > 0
    assert told["epochs"] == 3


def test_weights_of_another_run(trained, pairs, tmp_path):
    begun = Experiment(recipe(tmp_path), tmp_path / "next", data=pairs, init=trained)
    for one, other in zip(begun.model.parameters(), PairRun(trained).model.parameters(), strict=True):
        assert one.equal(other)
    fewer = config.load_recipe(tmp_path / "toy.toml", ["data.max_vocabulary=6"])
    with pytest.raises(UserError, match=r"--init .*: its vocabularies differ"):
        Experiment(fewer, tmp_path / "no", data=pairs, init=trained)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a b c d e f g h a", "source.txt:2: a source of 9 symbols, the limit is 8"),
        ("zz yy", "source.txt:2: none of the 2 symbols is in the source vocabulary"),
    ],
)
def test_a_file_of_which_no_source_can_be_read(trained, tmp_path, capsys, line, message):
    source = tmp_path / "source.txt"
    source.write_text(f"\n{line}\n{line}\n")
    assert main(["translate", str(trained), "--source", str(source)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert len(told.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--source is missing"),
        (["--prompt", "a"], "--prompt is not an option"),
        (["--source", __file__, "--beam", "2", "--nbest", "3"], "--nbest is 3"),
        (["--source", "no-such-file"], "no-such-file: cannot be read"),
        (["--source", __file__, "--unconstrained"], "--unconstrained is for trees"),
    ],
)
def test_arguments_that_do_not_fit(trained, capsys, arguments, message):
    assert main(["translate", str(trained), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_commands_for_text_refuse_the_run(trained):
    with pytest.raises(UserError, match="is a run on pairs; here a run on text is needed"):
        TextRun(trained)


def test_recipes_that_ask_for_streams(pairs, tmp_path):
    with pytest.raises(UserError, match="not cut into windows"):
        Experiment(recipe(tmp_path, window="{ random = true }"), tmp_path / "run", data=pairs)


@pytest.mark.parametrize(("file", "symbol"), [("target", "<eos>"), ("target", "<unk>"), ("source", "<unk>")])
def test_a_vocabulary_without_a_symbol_that_it_needs_is_refused(trained, tmp_path, file, symbol):
    run = shutil.copytree(trained, tmp_path / "run")
    table = run / f"{file}-vocabulary.tsv"
    table.write_text("".join(line for line in table.read_text().splitlines(True) if not line.startswith(symbol)))
    with pytest.raises(UserError, match=f"it lacks {symbol}"):
        PairRun(run)


def test_baselines_of_targets_read_no_source_and_a_model_that_does_not_exceed_them_says_so(trained, pairs, tmp_path):
    rows = PairTask(recipe(tmp_path), str(pairs)).baselines(None, ["valid", "test"])
    assert [row.name for row in rows[::2]] == ["unigram of targets", "Kneser-Ney 5-gram of targets"]
    task = PairTask(recipe(tmp_path), str(pairs))
    train, test = (task.corpus.split(name).target for name in ("train", "test"))
    counts = np.bincount(train.symbols, minlength=len(task.inputs)) + 1.0
    counts[task.inputs.target.eos] += len(train)
    chances = np.log(counts / counts.sum())
    nll = -(chances[test.symbols].sum() + len(test) * chances[task.inputs.target.eos]) / (len(test.symbols) + len(test))
    assert rows[1].nll == pytest.approx(nll)
    results = [result_of(row) for row in json.loads((trained / "results.json").read_text())]
    assert "than the baseline unigram" in task.remark([msgspec.structs.replace(results[0], nll=99.0)], rows)
    good = [msgspec.structs.replace(one, nll=0.1) for one in results]
    assert (task.remark(good, rows) is None) == (good[1].output.measures[0].value > good[1].output.baseline[0].value)
    written = written_by("parrot", "test", 20, [msgspec.structs.replace(good[1].output.measures[0], value=100.0)])
    assert "baseline parrot on the test split (BLEU" in task.remark(good, [written])
