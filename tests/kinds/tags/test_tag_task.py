"""Tags end to end: train, resume, evaluate, tag, draw; every mistake in one line."""

import json
import shutil

import pytest

import elman
from elman import config
from elman.cli import main
from elman.errors import UserError
from elman.evaluation.result import result_of
from elman.kinds.tags.run import BASELINE, NETWORK, TagRun
from elman.learning import checkpoint
from elman.tasks.evaluating import EvaluationOptions
from elman.tasks.experiment import Experiment
from support import tagged
from support.commands import refusal
from support.interruption import StopAt

SENTENCE = ["fish", "p", "duck", "q"]
RIGHT = ["N", "X", "V", "X"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tagged.write(tmp_path_factory.mktemp("data") / "tags.txt")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, data):
    out = tmp_path_factory.mktemp("runs") / "run"
    file = out.with_suffix(".toml")
    file.write_text(config.dump_recipe(tagged.recipe(epochs=6)))
    assert main(["train", str(file), "--data", str(data), "--out", str(out), "--baselines", "--json"]) == 0
    return out


@pytest.fixture(scope="module")
def chunker(tmp_path_factory):
    bank = tagged.write_bank(tmp_path_factory.mktemp("bank") / "bank.ptb")
    options = {"form": "trees", "tags": "chunks", "valid": 10, "test": 10}
    return run_of(tmp_path_factory.mktemp("runs"), bank, options=options)


def run_of(tmp_path, data, name="run", options=None, **how):
    experiment = Experiment(tagged.recipe(data=options, **how), tmp_path / name, data=data)
    experiment.train()
    experiment.finish()
    return TagRun(tmp_path / name)


def values(result, system=NETWORK):
    return {one.name: one.value for one in result.tagging[system]}


@pytest.mark.slow
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_an_interrupted_tagger_is_the_same_run_bit_for_bit(data, tmp_path, optimiser):
    """Also with spelled words, dropout and averaged weights."""
    made = tagged.recipe(
        epochs=3,
        encoder={"kind": "characters", "size": 4, "widths": [1, 2], "filters": [3, 4], "dropout": 0.1},
        output_dropout=0.2,
        training={
            "optimiser": {"kind": optimiser, "lr": 0.05},
            **({"averaging": {"kind": "exponential"}} if optimiser == "adam" else {}),
        },
    )
    for name, stops in (("whole", []), ("parts", [StopAt(20)])):
        Experiment(made, tmp_path / name, data=data).train(stops)
    Experiment(made, tmp_path / "parts", data=data, resume=True).train()
    whole, parts = (checkpoint.load(tmp_path / name / "model.safetensors")[0] for name in ("whole", "parts"))
    assert checkpoint.digest_of(whole) == checkpoint.digest_of(parts)
    lines = [
        [json.loads(line).get("nll") for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("whole", "parts")
    ]
    lines = [[nll for nll in some if nll is not None] for some in lines]
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_what_comes_after_a_word_is_read_in_both_directions_alone(trained, data, tmp_path):
    """The tag of a word depends on the next one: forwards it cannot be known, nor by the word's most frequent tag."""
    rows = [result_of(row) for row in json.loads((trained / "results.json").read_text())]
    assert [row.split for row in rows] == ["valid", "test"]
    forwards = run_of(tmp_path, data, bidirectional=False, epochs=6).evaluate()
    ours, baseline = values(rows[1]), values(rows[1], BASELINE)
    assert ours["accuracy"] == 100
    assert 50 <= values(forwards)["accuracy"] < 90
    assert 50 <= baseline["accuracy"] < 90
    assert rows[1].accuracy == 1
    assert rows[1].nll < 0.1 < forwards.nll
    assert rows[1].confusions == []
    assert {(one.right, one.found) for one in forwards.confusions} <= {("N", "V"), ("V", "N")}


def test_files_of_a_run(trained):
    rows = json.loads((trained / "baselines.json").read_text())
    assert [(row["name"], row["split"]) for row in rows] == [(BASELINE, "valid"), (BASELINE, "test")]
    result = json.loads((trained / "results.json").read_text())[1]
    shown = {one["name"]: one["value"] for one in result["tagging"][BASELINE]}
    assert 100 * rows[1]["accuracy"] == pytest.approx(shown["accuracy"])
    page = (trained / "report.html").read_text()
    assert page.count('<p class="tags"') == 6
    assert f'<th scope="col">{BASELINE}</th>' in page
    assert "tags right" in page
    facts = json.loads((trained / "data.json").read_text())
    assert facts["splits"]["test"]["lines"] == 20
    assert {path.name for path in trained.iterdir()} >= {"vocabulary.tsv", "tags.tsv", "lexicon.tsv", "samples.json"}


@pytest.mark.slow
def test_wrong_tags_are_marked_in_the_report(data, tmp_path):
    run = run_of(tmp_path, data, bidirectional=False, epochs=1)
    assert main(["report", str(run.path)]) == 0
    page = (run.path / "report.html").read_text()
    assert 'class="wrong" title="right: ' in page
    assert "Tags most often confused" in page


def test_tagging_from_python(trained):
    found = elman.load(trained).tag([SENTENCE, ["fish", "q"]])
    assert [(one.words, one.tags) for one in found] == [(SENTENCE, RIGHT), (["fish", "q"], ["V", "X"])]
    assert all(0.5 < probability <= 1 for one in found for probability in one.probabilities)
    assert elman.load(trained).tag([]) == []
    with pytest.raises(UserError, match="sentence:2: no word"):
        elman.load(trained).tag([["fish"], []])


def test_certificates_of_stability_are_for_other_runs(trained, capsys):
    assert main(["analyze", "stability", str(trained)]) == 2
    assert "is a run on tags; certificates of stability are for runs on text or music" in capsys.readouterr().err


def test_tagging_on_the_command_line(trained, tmp_path, capsys, monkeypatch):
    text = f"{' '.join(SENTENCE)}\nfish q\n"
    (tmp_path / "text").write_text(text)
    wanted = "fish\tN\np\tX\nduck\tV\nq\tX\n\nfish\tV\nq\tX\n\n"
    assert main(["tag", str(trained), str(tmp_path / "text")]) == 0
    assert capsys.readouterr().out == wanted
    monkeypatch.setattr("sys.stdin", open(tmp_path / "text"))  # noqa: SIM115, PTH123 - closed by the process
    assert main(["tag", str(trained), "-"]) == 0
    assert capsys.readouterr().out == wanted
    assert main(["tag", str(trained), str(tmp_path / "text"), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}: 2 sentences\n"
    assert (tmp_path / "out").read_text() == wanted
    assert main(["tag", str(trained), "--text", "fish q", "--probabilities"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if line]
    assert [row[:2] for row in rows] == [["fish", "V"], ["q", "X"]]
    assert all(0 < float(row[2]) <= 1 for row in rows)
    assert main(["tag", str(trained), "--text", "fish,q", "--raw", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["words"] == ["fish", ",", "q"]
    assert record.keys() == {"words", "tags", "probabilities"}
    capsys.readouterr()
    assert main(["tag", str(trained), "--text", "fish zzz", "--out", str(tmp_path / "out"), "--json"]) == 0
    assert "--text: 1 of 2 words (50.0 %) is not in the vocabulary, read as <unk>: zzz" in capsys.readouterr().err
    assert json.loads((tmp_path / "out").read_text())[0]["words"] == ["fish", "zzz"]


def test_given_tags_stand_before_those_that_are_found(trained, tmp_path, capsys):
    (tmp_path / "given").write_text("fish V\np X\n\nduck V\nq X\n")
    assert main(["tag", str(trained), str(tmp_path / "given")]) == 2
    assert "words and tags in columns; add --given to read them" in capsys.readouterr().err
    assert main(["tag", str(trained), str(tmp_path / "given"), "--given"]) == 0
    told = capsys.readouterr()
    assert told.out == "fish\tV\tN\np\tX\tX\n\nduck\tV\tV\nq\tX\tX\n\n"
    assert "3 of 4 words tagged right (75.00 %)" in told.err
    assert main(["tag", str(trained), str(tmp_path / "given"), "--given", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["given"] == ["V", "X"]


def test_evaluation_on_the_command_line_does_not_depend_on_the_batch(trained, data, capsys):
    run = TagRun(trained)
    one, several = (run.evaluate(EvaluationOptions(streams=streams)) for streams in (1, 5))
    assert one.nll == pytest.approx(several.nll, rel=1e-5)
    assert one.tagging == several.tagging
    assert main(["evaluate", str(trained), "--split", "valid"]) == 0
    shown = capsys.readouterr().out
    assert "nats/word" in shown
    assert "most frequent tag (95 %)" in shown
    assert "accuracy, known words" in shown
    assert "accuracy, unknown words" not in shown
    assert main(["evaluate", str(trained), "--data", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nll"] == pytest.approx(one.nll, rel=1e-5)


@pytest.mark.slow
def test_chunks_are_measured_by_their_f1(chunker, capsys):
    result = chunker.evaluate()
    ours = values(result)
    assert list(ours)[:3] == ["chunk F1", "chunk precision", "chunk recall"]
    assert ours["chunk F1"] > 95
    assert main(["evaluate", str(chunker.path)]) == 0
    assert "strict (first word, last word and type)" in capsys.readouterr().out
    (found,) = chunker.tag([["the", "cat", "sees", "a", "dog", "."]])
    assert found.tags == ["B-NP", "I-NP", "O", "B-NP", "I-NP", "O"]
    assert main(["tag", str(chunker.path), "--text", "(ROOT (S (NP (DT a) (NN cat)) (VP (VB sees))))", "--given"]) == 0
    told = capsys.readouterr()
    assert [line.split("\t")[:2] for line in told.out.splitlines() if line] == [
        ["a", "B-NP"], ["cat", "I-NP"], ["sees", "B-VP"],
    ]  # fmt: skip


def test_chunks_without_nervaluate_are_refused_before_training(tmp_path, monkeypatch):
    bank = tagged.write_bank(tmp_path / "bank.ptb")
    monkeypatch.setitem(__import__("sys").modules, "nervaluate", None)
    with pytest.raises(UserError, match=r"elman\[tags\]"):
        Experiment(tagged.recipe(data={"form": "trees", "tags": "chunks"}), tmp_path / "run", data=bank)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_spelled_words_are_never_unknown(data, tmp_path):
    encoder = {"kind": "characters", "size": 4, "widths": [1, 2], "filters": [4, 6]}
    run = run_of(tmp_path, data, encoder=encoder, epochs=2)
    one, other, again = run.tag([["fishy", "p"], ["zebra", "p"], ["fishy", "p"]])
    assert one.probabilities == pytest.approx(again.probabilities)
    assert one.probabilities != pytest.approx(other.probabilities, rel=1e-6)
    last = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    best = min(line["nll"] for line in last if line["kind"] == "valid")
    assert run.evaluate(EvaluationOptions(split="valid")).nll == pytest.approx(best, rel=1e-5)


def test_starting_from_another_run(trained, data, tmp_path):
    made = Experiment(tagged.recipe(), tmp_path / "more", data=data, init=trained)
    theirs = TagRun(trained).model.state_dict()
    assert all(bool((made.model.state_dict()[name] == tensor).all()) for name, tensor in theirs.items())
    other = tagged.write(tmp_path / "other", count=150, seed=5)
    with pytest.raises(UserError, match="its vocabularies differ; use the same tags for both"):
        Experiment(tagged.recipe(), tmp_path / "others", data=other, init=trained)


def test_a_recipe_is_chosen_for_columns(data, tmp_path, capsys, monkeypatch):
    from elman.tasks.proposal import choose

    monkeypatch.setattr(choose, "TIMED_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(data), "--dry-run", "--threads", "1"]) == 0
    told = capsys.readouterr()
    assert "recipes/tagging/small-bidirectional-characters.toml" in told.out + told.err
    assert "words and tags: a tagger that reads in both directions" in told.out + told.err
    assert "--set data.form=columns" in told.out + told.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"max_words": 1}}, "no training sentence has data.max_words = 1"),
        ({"data": {"valid": 100, "test": 100}}, "160 sentences, too few to hold out"),
        ({"data": {"valid": 0}}, "data.valid"),
        ({"data": {"test": 0}}, "data.test"),
        ({"data": {"tag_column": 2}}, "2 columns, and data.tag_column is 2"),
        ({"data": {"form": "conllu"}}, "a line of CoNLL-U has 10"),
        ({"data": {"form": "trees"}}, "between trees"),
        ({"encoder": {"kind": "frames", "size": 4}}, 'write "lookup" or "characters"'),
        ({"training": {"window": {"random": True}}}, "training.window.random"),
    ],
)
def test_mistakes_in_a_recipe(changes, message, data, tmp_path):
    with pytest.raises(UserError, match=message):
        Experiment(tagged.recipe(**changes), tmp_path / "run", data=data)
    assert not (tmp_path / "run").exists()


def test_mistakes_on_the_command_line(trained, tmp_path, capsys):
    (tmp_path / "blank").write_text("fish p\n\nfish q\n")
    (tmp_path / "ragged").write_text("fish V\np\n")
    for words, message in (
        ([], "give a FILE with a sentence per line"),
        (["--text", "a", str(tmp_path / "blank")], "give a FILE with a sentence per line"),
        ([str(tmp_path / "blank")], ":2: a blank line"),
        ([str(tmp_path / "nope")], "cannot be read"),
        ([str(tmp_path / "ragged"), "--given"], "ragged:2: 1 column, and the first line has 2"),
        (["--text", "a b", "--given", "--raw"], "leave out --raw"),
    ):
        assert message in refusal(capsys, "tag", str(trained), *words)
    assert "use `elman tag" in refusal(capsys, "generate", str(trained))
    assert "this command needs a run on trees; use `elman tag" in refusal(capsys, "parse", str(trained), "--text", "a")
    assert "adaptation reads one text" in refusal(capsys, "evaluate", str(trained), "--method", "dynamic")
    assert "--beam does not belong to a run on tags" in refusal(capsys, "evaluate", str(trained), "--beam", "2")


def test_a_prose_file_is_no_data_for_a_tagger(tmp_path, capsys):
    file, prose = tmp_path / "r.toml", tmp_path / "prose.txt"
    file.write_text(config.dump_recipe(tagged.recipe()))
    prose.write_text("It was a bright cold day in April,\nand the clocks were striking thirteen.\n" * 30)
    assert "the recipe is for tags" in refusal(
        capsys, "train", str(file), "--data", str(prose), "--out", str(tmp_path / "run")
    )


def test_damaged_files_of_a_run_are_refused(trained, tmp_path):
    for name, text, message in (
        ("tags.tsv", "N\t3\nV\t2\n", "it lacks <unk>"),
        ("lexicon.tsv", "fish\n", "expected a word, its tag and a count"),
        ("lexicon.tsv", "fish\tN\t3\n", "trained with another set of tags"),
    ):
        copy = shutil.copytree(trained, tmp_path / f"copy{len(list(tmp_path.iterdir()))}")
        (copy / name).write_text(text)
        with pytest.raises(UserError, match=message):
            TagRun(copy).tag([SENTENCE])
