"""Trees end to end: train, resume, evaluate, parse, draw; every mistake in one line."""

import json
import re
import shutil

import msgspec
import numpy as np
import pytest

import elman
from elman import config
from elman.cli import main
from elman.data.trees.brackets import bracketed, leaves, read_tree, read_trees
from elman.errors import UserError
from elman.evaluation.measures import tree_measures
from elman.evaluation.result import result_of
from elman.kinds.trees import baselines
from elman.kinds.trees.corpus import open_trees
from elman.kinds.trees.run import TreeRun
from elman.learning import checkpoint
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.experiment import Experiment
from support import text_runs, treebank
from support.commands import refusal
from support.interruption import StopAt

SENTENCE = "the cat near a dog sees the fish ."
RIGHT = (
    "(ROOT (S (NP (NP (XX the) (XX cat)) (PP (XX near) (NP (XX a) (XX dog))))"
    " (VP (XX sees) (NP (XX the) (XX fish))) (XX .)))"
)


@pytest.fixture(scope="module", autouse=True)
def _short_bag_of_words():
    """Its thousand updates, half a second a run, are tested beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "UPDATES", 20)
        yield


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return treebank.write(tmp_path_factory.mktemp("bank") / "bank.ptb")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, bank):
    out = tmp_path_factory.mktemp("runs") / "run"
    file = out.with_suffix(".toml")
    file.write_text(config.dump_recipe(treebank.recipe(epochs=6)))
    assert main(["train", str(file), "--data", str(bank), "--out", str(out), "--baselines", "--json"]) == 0
    return out


def run_of(tmp_path, bank, name="run", **how):
    experiment = Experiment(treebank.recipe(**how), tmp_path / name, data=bank)
    experiment.train()
    experiment.finish()
    return TreeRun(tmp_path / name)


@pytest.mark.slow
def test_an_interrupted_parser_is_the_same_run_bit_for_bit(bank, tmp_path):
    made = treebank.recipe(epochs=2, output_dropout=0.2, leaves={"kind": "stack", "sizes": [3]})
    for name, stops in (("whole", []), ("parts", [StopAt(7)])):
        Experiment(made, tmp_path / name, data=bank).train(stops)
    Experiment(made, tmp_path / "parts", data=bank, resume=True).train()
    whole, parts = (checkpoint.load(tmp_path / name / "model.safetensors")[0] for name in ("whole", "parts"))
    assert checkpoint.digest_of(whole) == checkpoint.digest_of(parts)


@pytest.mark.slow
def test_single_words_without_a_label_are_no_end_of_training(tmp_path):
    """A batch of them has no loss, and no line of metrics while nothing was counted."""
    path = treebank.write(tmp_path / "bank.ptb")
    path.write_text("".join(f"(NN w{number})\n{tree}" for number, tree in enumerate(path.open())))
    recipe = treebank.recipe(parser=False, epochs=1)
    training = msgspec.structs.replace(recipe.training, batch_size=1, log_every=1)
    Experiment(msgspec.structs.replace(recipe, training=training), tmp_path / "run", data=path).train()
    losses = [one["loss"] for one in text_runs.metrics(tmp_path / "run") if one["kind"] == "train"]
    assert 0 < len(losses) < 240 - 24
    assert all(loss > 0 for loss in losses)


@pytest.mark.slow
def test_a_parser_learns_a_grammar(trained):
    rows = [result_of(row) for row in json.loads((trained / "results.json").read_text())]
    assert [row.split for row in rows] == ["valid", "test"]
    output, labels = rows[1].output, rows[1].labels
    assert (output.search, output.baseline_name) == ("chart", "right-branching")
    ours, theirs = ({one.name: one.value for one in each} for each in (output.measures, output.baseline))
    assert ours["bracket F1"] > 90 > theirs["bracket F1"]
    assert ours["well-formed"] == 100
    assert labels["this network"].value > 95
    assert rows[1].accuracy == pytest.approx(labels["this network"].value / 100)
    assert set(labels) == {"this network", "majority", "bag of words"}


def test_files_of_a_run(trained):
    rows = json.loads((trained / "baselines.json").read_text())
    names = ("majority", "bag of words", "left-branching")
    assert [row["name"] for row in rows] == [name for name in names for _ in range(2)]
    assert (rows[-1]["nll"], rows[-1]["written"][0]["name"]) == (None, "bracket F1")
    assert rows[-1]["written"][0]["value"] < 90
    page = (trained / "report.html").read_text()
    assert "chart search</th>" in page
    assert page.count("left-branching</th>") == 2, "of both splits, in the tables of what is written"
    assert "label accuracy</th>" in page
    assert page.count('<svg class="tree"') == 4
    facts = json.loads((trained / "data.json").read_text())
    assert facts["splits"]["train"]["lines"] + 24 <= 120
    assert (trained / "labels.tsv").read_text().split("\t")[0] == "NP"


def test_the_report_counts_unknown_words_among_words(trained, tmp_path):
    """Nodes are what is labelled, words what is read."""
    run = shutil.copytree(trained, tmp_path / "run")
    facts = json.loads((run / "data.json").read_text())
    facts["splits"]["test"] |= {"unknown": 9}
    rows = json.loads((run / "results.json").read_text())
    (run / "data.json").write_text(json.dumps(facts))
    (run / "results.json").write_text(json.dumps([row | {"unknown": 9} for row in rows]))
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert f"<td>9</td><td>{900 / facts['splits']['test']['words']:.1f} %</td>" in page
    assert f"{facts['splits']['test']['tokens']} test constituents, each scored once; every tree by itself" in page
    assert re.search(r"Vocabulary of \d+ words</h3>", page)


def test_parsing_from_python_and_from_the_command_line(trained, tmp_path, capsys):
    found = elman.load(trained).parse([SENTENCE.split(), ["fish"]])
    assert bracketed(found[0].tree) == RIGHT
    (tmp_path / "text").write_text(f"{SENTENCE}\n{SENTENCE}\n")
    more = ["--vectors", str(tmp_path / "v.npz"), "--page", str(tmp_path / "p.html")]
    assert main(["parse", str(trained), str(tmp_path / "text"), *more]) == 0
    assert capsys.readouterr().out == f"{RIGHT}\n" * 2
    vectors = np.load(tmp_path / "v.npz")
    assert vectors["vector"].shape == (34, 8)
    np.testing.assert_array_equal(vectors["sentence"], [1] * 17 + [2] * 17)
    np.testing.assert_allclose(vectors["vector"][:17], vectors["vector"][17:], rtol=1e-5)
    assert list(zip(vectors["start"], vectors["end"], strict=True))[16] == (0, 9)
    assert '<svg class="tree"' in (tmp_path / "p.html").read_text()
    assert main(["parse", str(trained), "--text", "The dog sees a cat.", "--raw", "--json"]) == 0
    (parsed,) = json.loads(capsys.readouterr().out)
    assert parsed["words"] == ["The", "dog", "sees", "a", "cat", "."]
    assert {"label": "S", "start": 0, "end": 6} in parsed["constituents"]


def test_unknown_words_are_reported_and_parentheses_are_not_brackets(trained, tmp_path, capsys):
    assert main(["parse", str(trained), "--text", "the \udcff", "--out", str(tmp_path / "bytes")]) == 0
    assert b" \xff)" in (tmp_path / "bytes").read_bytes()
    capsys.readouterr()
    assert main(["parse", str(trained), "--text", "the ( dog ) zzz", "--out", str(tmp_path / "t"), "--json"]) == 0
    told = capsys.readouterr()
    assert told.out == f"{tmp_path / 't'}: 1 tree\n"
    assert "--text: 3 of 5 words (60.0 %) are not in the vocabulary, read as <unk>: (, ), zzz" in told.err
    (record,) = json.loads((tmp_path / "t").read_text())
    assert record["words"] == ["the", "(", "dog", ")", "zzz"]
    assert [leaf.word for leaf in leaves(read_tree(record["tree"], "t"))] == ["the", "-LRB-", "dog", "-RRB-", "zzz"]


@pytest.mark.slow
def test_greedy_search_and_the_chart_may_differ_but_write_trees(trained, capsys):
    assert main(["evaluate", str(trained), "--search", "greedy", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)["output"]
    assert output["search"] == "greedy"
    assert {one["name"]: one["value"] for one in output["measures"]}["well-formed"] == 100
    assert main(["evaluate", str(trained), "--split", "valid"]) == 0
    shown = capsys.readouterr().out
    assert "chart search (95 %)" in shown
    assert "bag of words (95 %)" in shown
    assert "right-branching" in shown


def test_given_trees_are_labelled(trained, bank, tmp_path, capsys):
    (tmp_path / "given").write_text("(ROOT (X (X (XX the) (XX dog)) (X (XX sees) (X (XX a) (XX cat))) (XX .)))\n")
    assert main(["parse", str(trained), str(tmp_path / "given")]) == 2
    assert "trees in brackets; add --given to read them" in capsys.readouterr().err
    assert main(["parse", str(trained), str(tmp_path / "given"), "--given"]) == 0
    wanted = "(ROOT (S (NP (XX the) (XX dog)) (VP (XX sees) (NP (XX a) (XX cat))) (XX .)))\n"
    assert capsys.readouterr().out == wanted


def test_nearest_phrases(trained, capsys):
    assert main(["analyze", "phrases", str(trained), "the cat", "(NP (DT a) (NN dog))", "-k", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["phrases"]
    assert [one["phrase"] for one in found] == ["the cat", "a dog"]
    assert all(near["label"] == "NP" and near["cosine"] > 0.8 for one in found for near in one["nearest"])
    assert "the cat" not in {near["text"] for near in found[0]["nearest"]}


@pytest.mark.slow
def test_evaluation_does_not_depend_on_the_batch(trained):
    run = TreeRun(trained)
    results = [run.evaluate(EvaluationOptions(streams=streams)) for streams in (1, 5)]
    assert results[0].nll == pytest.approx(results[1].nll, rel=1e-5)
    assert results[0].output == results[1].output


@pytest.mark.slow
def test_the_trees_that_are_shown_are_no_longer_than_a_parser_accepts(bank, tmp_path):
    run = run_of(tmp_path, bank, epochs=1, data={"evaluation": {"max_words": 6}})
    shown = json.loads((run.path / "samples.json").read_text())
    assert shown
    assert all(len(row["text"].split()) <= 6 for row in shown)


def test_the_evaluation_of_a_given_parse_is_that_of_its_brackets(trained):
    run = TreeRun(trained)
    split = run.corpus().split("test")
    lines = split.linear
    texts = [" ".join(words) for words in split.sentences]
    assert tree_measures(lines, lines, texts)[0].value == 100


@pytest.mark.slow
@pytest.mark.parametrize("composition", ["affine", "matrix-vector", "child-sum-lstm"])
def test_every_composition_labels_better_than_the_majority(composition, bank, tmp_path, capsys):
    data = {"binary": "none"} if composition == "child-sum-lstm" else {}
    run = run_of(tmp_path, bank, parser=False, composition=composition, data=data)
    result = run.evaluate()
    assert result.output is None
    assert result.labels["this network"].value > result.labels["majority"].value + 10
    assert refusal(capsys, "parse", str(run.path), "--text", SENTENCE).startswith(
        f"elman: {run.path}: elman parse without"
    )
    assert "labels given trees" in refusal(capsys, "evaluate", str(run.path), "--search", "chart")
    assert json.loads((run.path / "samples.json").read_text())[0]["figure"]["given"] is True


@pytest.mark.slow
def test_spelled_words_are_never_unknown(bank, tmp_path):
    encoder = {"kind": "characters", "size": 4, "widths": [1, 2], "filters": [4, 6]}
    run = run_of(tmp_path, bank, encoder=encoder, epochs=2)
    one, other = run.parse([["the", "cat", "sees", "a", "dogfish", "."], ["the", "cat", "sees", "a", "zebra", "."]])
    assert one.shape.num_words == other.shape.num_words == 6
    vectors = run.vectors([["dogfish"], ["zebra"], ["dogfish"]], [run.parse([["cat"]])[0].shape] * 3)
    np.testing.assert_allclose(vectors[0], vectors[2], rtol=1e-5)
    assert not np.allclose(vectors[0], vectors[1])


def test_starting_from_another_run(trained, bank, tmp_path):
    made = Experiment(treebank.recipe(), tmp_path / "more", data=bank, init=trained)
    theirs = TreeRun(trained).model.state_dict()
    assert all(bool((made.model.state_dict()[name] == tensor).all()) for name, tensor in theirs.items())


def test_held_out_trees_are_those_of_pairs(bank):
    """The same trees are held out by a model of pairs, so that both can be compared."""
    from elman.kinds.pairs.corpus import open_pairs

    options = treebank.recipe().data.options
    ours, theirs = open_trees(bank, options), open_pairs(bank, options.files)
    for name in ("valid", "test"):
        assert [" ".join(words) for words in ours.split(name).sentences] == theirs.split(name).source_text
    assert all(list(leaves(read_trees(line, "x")[0])) for line in bank.read_text().splitlines()[:3])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"binary": "none"}}, 'data.binary = "none"'),
        ({"data": {"max_words": 3}}, "no training sentence has data.max_words = 3"),
        ({"data": {"valid": 100, "test": 100}}, "too few to hold out"),
        ({"data": {"valid": 0}}, "data.valid"),
        ({"data": {"test": 0}}, "data.test"),
        ({"encoder": {"kind": "frames", "size": 4}}, 'write "lookup" or "characters"'),
        ({"leaves": {"kind": "stack", "sizes": [3], "cell": {"kind": "highway"}}}, "model.core.leaves.cell"),
    ],
)
def test_mistakes_in_a_recipe(changes, message, bank, tmp_path):
    with pytest.raises(UserError, match=message):
        Experiment(treebank.recipe(**changes), tmp_path / "run", data=bank)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model.core.parser", "false", "belong together"),
        ("training.rule", "{kind='rtrl'}", "training.rule is for sequences"),
        ("model.core", "{kind='stack',sizes=[4]}", 'needs model.core.kind = "recursive"'),
        ("training.window.random", "true", "training.window.random"),
    ],
)
def test_settings_that_do_not_fit_trees(key, value, message, bank, tmp_path, capsys):
    file = tmp_path / "r.toml"
    file.write_text(config.dump_recipe(treebank.recipe()))
    command = ["train", str(file), "--data", str(bank), "--out", str(tmp_path / "run"), "--set", f"{key}={value}"]
    assert message in refusal(capsys, *command)


def test_mistakes_on_the_command_line(trained, tmp_path, capsys):
    (tmp_path / "blank").write_text("the cat\n\nthe dog\n")
    long = " ".join(["cat"] * 151)
    for words, message in (
        ([], "give a FILE with a sentence per line"),
        (["--text", "a", str(tmp_path / "blank")], "give a FILE with a sentence per line"),
        ([str(tmp_path / "blank")], ":2: a blank line"),
        (["--text", long], "--text:1: 151 words; a sentence has 1 to 150"),
        (["--text", "a", "--vectors", "v.txt"], "must end in .npz"),
        (["--text", "a cat", "--given"], "trees"),
    ):
        assert message in refusal(capsys, "parse", str(trained), *words)
    assert "use `elman parse" in refusal(capsys, "generate", str(trained))
    assert "adaptation reads one text" in refusal(capsys, "evaluate", str(trained), "--method", "dynamic")


def test_a_damaged_label_file_is_refused(trained, tmp_path):
    import shutil

    copy = shutil.copytree(trained, tmp_path / "copy")
    (copy / "labels.tsv").write_text("NP\t3\nVP\t2\n")
    with pytest.raises(UserError, match="it lacks <none>"):
        TreeRun(copy)
