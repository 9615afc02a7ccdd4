import json
import math
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest
import tomli_w

from elman.errors import UserError
from elman.report import comparison, curves, tables
from elman.report.folder import read_folder
from elman.report.page import write_report

VOID = {"meta", "br", "link", "img", "hr", "input"}
OPTIONAL = (
    "data.json",
    "vocabulary.tsv",
    "environment.json",
    "results.json",
    "baselines.json",
    "samples.json",
    "surprisal.json",
    "model.safetensors",
)


class Page(HTMLParser):
    """Tags in balance, ids once, and everything that could load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "data", "action") and not value.startswith("#"):
                self.loads.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_one_run_has_every_section(make_run, drawn):
    run = make_run()
    out = write_report([run])
    assert out == run / "report.html"
    page = read(out)
    for heading in ("Learning curves", "Results", "Samples", "Data", "Configuration", "Environment"):
        assert heading in page.text
    assert "What surprised the network" in page.text
    assert out.read_text().count("<svg") == 5
    assert "averaging begins" in page.text
    assert "clipped above 0.25" in page.text
    assert "Kneser-Ney 5-gram 148" in page.text
    assert "24,221,600" in page.text
    assert "82,430 test words" in page.text
    assert "weight_drop = 0.5" in page.text


@pytest.mark.slow
def test_the_page_stands_alone_and_is_well_formed(make_run, drawn):
    for runs in ([make_run("a")], [make_run("b"), make_run("c", seed=2), make_run("d", title="other")]):
        page = read(out := write_report(runs, runs[0] / "page.html"))
        assert page.loads == []
        assert not page.tags & {"script", "link", "img", "iframe", "object"}
        assert len(page.ids) == len(set(page.ids))
        anchors = re.findall(r'<a href="#([^"]*)"', out.read_text())
        assert anchors
        assert set(anchors) <= set(page.ids)
        assert "@import" not in out.read_text()
        assert not re.search(r"url\((?!#)", out.read_text())


@pytest.mark.slow
def test_figures_are_those_of_the_files(make_run):
    run = make_run()
    rows = {row["split"]: row for row in json.loads((run / "results.json").read_text())}
    text = read(write_report([run])).text
    assert f"{rows['test']['perplexity']:.2f}" in text
    assert f"{rows['valid']['perplexity']:.2f}" in text
    assert f"{rows['test']['bits_per_character']:.3f}" in text
    assert "1,007" in text
    below = 100 * (1 - rows["test"]["perplexity"] / 141.2)
    assert f"the network is {below:.1f}\N{NO-BREAK SPACE}% below the Kneser-Ney 5-gram baseline" in text


def test_densities_are_compared_in_nats_and_have_no_bars(make_run, drawn):
    run = make_run(expected=False)
    table = tomllib.loads((run / "recipe.toml").read_text()) | {"data": {"kind": "series"}}
    (run / "recipe.toml").write_text(tomli_w.dumps(table))
    rows = [{"split": "test", "nll": -801.5, "perplexity": 0.0, "tokens": 9}]
    (run / "results.json").write_text(json.dumps(rows))
    (run / "baselines.json").write_text(json.dumps([{**rows[0], "nll": -802.0, "name": "persistence"}]))
    folder = read_folder(run)
    assert comparison.verdict(folder) == (
        "On the test split the network is 0.500 nats per step above the persistence baseline: NLL -801.500 to -802.000."
    )
    assert [row.test for row in tables.result_rows(folder)] == [-802.0, -801.5]
    assert tables.widest(tables.result_rows(folder)) == 0.0


def test_baselines_lie_on_the_scale_of_the_curves(make_run, drawn):
    run = make_run()
    table = tomllib.loads((run / "recipe.toml").read_text()) | {"data": {"kind": "music"}}
    (run / "recipe.toml").write_text(tomli_w.dumps(table))
    plot, _ = curves.loss_plots([read_folder(run)], [0])
    assert [mark.at for mark in plot.levels] == pytest.approx([math.log(148.3), math.log(664.2)])
    table["training"]["margin"] = {"kappa": 0.5}  # of a parser the curves are of another loss than the baselines
    (run / "recipe.toml").write_text(tomli_w.dumps(table))
    plot, _ = curves.loss_plots([read_folder(run)], [0])
    assert (plot.levels, plot.title) == ([], "Loss with the margin against epochs")


def test_what_is_predicted_by_a_tagger_of_a_treebank_are_words(make_run, drawn):
    run = make_run()
    for kind, symbol in {"tags": "word", "pairs": "symbol"}.items():
        table = tomllib.loads((run / "recipe.toml").read_text()) | {"data": {"kind": kind, "form": "trees"}}
        (run / "recipe.toml").write_text(tomli_w.dumps(table))
        facts = json.loads((run / "data.json").read_text()) | {"tokenisation": None}
        (run / "data.json").write_text(json.dumps(facts))
        assert read_folder(run).symbol == symbol


def test_of_error_rates_lower_is_better(make_run, drawn):
    run = make_run()
    measure = {"name": "error rate", "value": 5.0, "low": None, "high": None, "signature": "error rate: edits"}
    output = {"beam": 3, "copy_unknown": False, "measures": [measure], "baseline": [measure], "baseline_name": "x"}
    row = {"split": "test", "nll": 1.0, "perplexity": 2.7, "tokens": 9, "output": output}
    (run / "results.json").write_text(json.dumps([row]))
    assert "Per cent, higher is better, of the error rate lower; the intervals" in write_report([run]).read_text()


def test_the_worst_baseline_is_first(make_run, drawn):
    rows = tables.result_rows(read_folder(make_run()))
    names = ["unigram", "Kneser-Ney 5-gram", "this network", "published: Merity et al. 2018, Table 2"]
    assert [row.name for row in rows] == names
    assert [row.kind for row in rows] == ["baseline", "baseline", "network", "published"]
    assert [row.test for row in rows[:2]] == pytest.approx([639.3, 141.2])


@pytest.mark.slow
@pytest.mark.parametrize("missing", OPTIONAL)
def test_any_optional_file_may_be_missing(make_run, missing):
    run = make_run()
    (run / missing).unlink()
    read(write_report([run]))


@pytest.mark.slow
def test_recipe_and_metrics_are_enough(make_run):
    run = make_run(expected=False)
    for name in OPTIONAL:
        (run / name).unlink()
    text = read(write_report([run])).text
    assert "Learning curves" in text
    assert "No final figures yet" in text
    for heading in ("Samples", "Data", "Environment", "surprised"):
        assert heading not in text


def test_a_run_that_has_only_begun(make_run, drawn):
    run = make_run()
    (run / "metrics.jsonl").write_text("")
    for name in OPTIONAL:
        (run / name).unlink()
    text = read(write_report([run])).text
    assert "Learning curves" not in text
    assert "Configuration" in text


@pytest.mark.slow
def test_everything_of_the_user_is_escaped(make_run, drawn):
    attack = "</pre></title></style><script>alert('x')</script><img src=x onerror=alert(1)>"
    word = "<script>alert(1)</script>"
    run = make_run(f"<b>{word.replace('/', '')}", title=attack)
    (run / "vocabulary.tsv").write_text(f"{word}\t9\n<eos>\t5\nword\t3\n")
    (run / "surprisal.json").write_text(json.dumps({"sentence": [{"word": attack, "surprisal": 3.0}]}))
    (run / "samples.json").write_text(json.dumps([{"prompt": attack, "text": attack, "temperature": 1.0, "seed": 0}]))
    (run / "environment.json").write_text(json.dumps({attack: attack, "started": attack, "device": attack}))
    row = {"name": attack, "nll": 4.9, "perplexity": 141.0, "tokens": 9}
    baselines = [{**row, "split": split} for split in ("valid", "test")]
    (run / "baselines.json").write_text(json.dumps(baselines))
    facts = {"name": attack, "source": attack, "eos": attack, "tokenisation": attack, "digest": attack}
    splits = {attack: {"tokens": 5, "unknown": 1, "sha256": attack}}
    (run / "data.json").write_text(json.dumps({**facts, "splits": splits}))
    with (run / "recipe.toml").open("a") as file:
        file.write(f'[more]\n"{attack}" = "{attack}"\n')
    twin = make_run("twin", seed=2, title=attack + "2")
    for page in (read(write_report([run])), read(write_report([run, twin], run / "two.html"))):
        assert not page.tags & {"script", "img"}
        assert attack in page.text


@pytest.mark.parametrize("name", ["recipe.toml", "metrics.jsonl"])
def test_what_is_no_run_folder_is_named(make_run, name, drawn):
    run = make_run()
    (run / name).unlink()
    explained = {
        "recipe.toml": "is not a run folder: it has no recipe.toml; give the folder that `elman train --out` wrote",
        "metrics.jsonl": "has no metrics.jsonl: nothing to report; train first, or restore the file",
    }
    with pytest.raises(UserError) as caught:
        write_report([run])
    assert str(caught.value) == f"{run} {explained[name]}"


@pytest.mark.parametrize("name", ["data.json", "environment.json", "results.json", "baselines.json", "samples.json"])
def test_damaged_files_are_named(make_run, name, drawn):
    run = make_run(epochs=1)
    for content in ("{", '{"a": 1', "[[]]", '"text"', '[{"split": 3}]', "\x00", "7"):
        (run / name).write_text(content)
        with pytest.raises(UserError, match=re.escape(f"{run / name}: damaged (")):
            write_report([run])


@pytest.mark.parametrize("figure", [{"kind": "tune"}, {"roll": [[60]]}, {"kind": "piano-roll", "roll": [[200]]}, 3])
def test_a_figure_that_cannot_be_drawn_is_damage(make_run, figure, drawn):
    run = make_run(epochs=1)
    (run / "samples.json").write_text(json.dumps([{"text": "C4", "figure": figure}]))
    with pytest.raises(UserError, match=re.escape(f"{run / 'samples.json'}: damaged (")):
        write_report([run])


def test_attention_without_a_weight_for_every_word_is_damage(make_run, drawn):
    run = make_run(epochs=1)
    row = {"text": "a b", "attention": {"source": ["c"], "target": ["a", "b"], "weights": [[1.0]]}}
    (run / "samples.json").write_text(json.dumps([row]))
    with pytest.raises(UserError, match=re.escape(f"{run / 'samples.json'}: damaged (weights are not")):
        write_report([run])


def test_damaged_recipe_and_model_are_named(make_run, drawn):
    run = make_run(epochs=1)
    (run / "model.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(UserError, match=r"model\.safetensors: truncated or not a model file"):
        write_report([run])
    (run / "recipe.toml").write_text("title = ")
    with pytest.raises(UserError, match=r"recipe\.toml: not a readable recipe"):
        write_report([run])
    (run / "recipe.toml").write_text('training = "long"')
    with pytest.raises(UserError, match=r"recipe\.toml: not a readable recipe \(Expected `object`, got `str`"):
        write_report([run])


@pytest.mark.slow
def test_half_a_character_does_not_stop_the_page(make_run):
    run = make_run(epochs=1)
    (run / "samples.json").write_text('[{"text": "half \\ud83d a smile"}]')
    assert "half ? a smile" in read(write_report([run])).text


@pytest.mark.slow
def test_no_run_and_a_folder_as_output_are_refused(make_run, tmp_path):
    with pytest.raises(UserError, match="give at least one run folder"):
        write_report([])
    with pytest.raises(UserError, match="is a folder; give the name of a file"):
        write_report([make_run()], tmp_path)


@pytest.mark.slow
def test_seeds_of_one_recipe_get_mean_and_deviation(make_run, tmp_path, monkeypatch):
    runs = [make_run(f"seed-{seed}", seed=seed) for seed in (1, 2, 3)]
    monkeypatch.chdir(tmp_path)
    out = write_report(runs)
    assert out == Path("report.html")
    values = [read_folder(run).result("test").perplexity for run in runs]
    mean = sum(values) / 3
    deviation = (sum((value - mean) ** 2 for value in values) / 2) ** 0.5
    text = read(out).text
    assert f"{mean:,.2f} ± {deviation:.2f}" in text
    assert "3 runs" in text
    assert "What differs" not in text
    assert all(run.name in text for run in runs)


def test_means_state_how_many_runs_have_a_finite_loss(make_run, drawn):
    """The runs that did not diverge are not the group."""
    runs = [make_run(f"seed-{seed}", seed=seed) for seed in (1, 2, 3)]
    rows = [dict(one, nll=None, perplexity=None) for one in json.loads((runs[2] / "results.json").read_text())]
    (runs[2] / "results.json").write_text(json.dumps(rows))
    (group,) = comparison.group_runs([read_folder(run) for run in runs])
    assert tables.ranking([group]).endswith(" over 2 of 3 runs.")
    assert tables.mean_and_deviation(group.test, 3).endswith(" (2 of 3)")
    assert "of" not in tables.mean_and_deviation(group.test, 2)


def test_a_loss_that_is_not_finite_is_so_in_words_and_in_the_table(make_run, drawn):
    """Not as e^700, in three hundred digits."""
    path = make_run()
    for name, nll in (("results.json", None), ("baselines.json", 100.0)):
        rows = [dict(one, nll=nll) for one in json.loads((path / name).read_text())]
        (path / name).write_text(json.dumps(rows))
    run = read_folder(path)
    assert comparison.verdict(run) == "On the test split the loss of the network is not finite."
    assert comparison.published_verdict(run) is None
    (ours,) = (row for row in tables.result_rows(run) if row.name == "this network")
    assert ours.test == ours.valid == math.inf
    assert comparison.against(1e43, 50.0) == "2e+43 % above"
    assert math.isfinite(tables.widest([ours, *tables.result_rows(read_folder(make_run("other")))]))
    assert not re.search(r"--width: (inf|nan)", write_report([path]).read_text())


@pytest.mark.slow
def test_groups_are_compared_and_their_difference_told(make_run, tmp_path):
    runs = [make_run(f"a{seed}", seed=seed, weight_drop=0.5, floor=60.0) for seed in (1, 2)]
    runs.append(make_run("b", seed=1, weight_drop=0.0, floor=90.0))
    groups = comparison.group_runs([read_folder(run) for run in runs])
    assert [len(group.runs) for group in groups] == [2, 1]
    assert comparison.differences([group.runs[0] for group in groups]) == [("model.core.weight_drop", ["0.5", "0.0"])]
    text = read(write_report(runs, tmp_path / "both.html")).text
    assert "3 runs in 2 groups" in text
    assert "model.core.weight_drop" in text
    assert "over 2 runs" in text


def test_runs_with_equal_seeds_are_no_replicates(make_run, capsys, drawn):
    paths = [make_run(f"{name}/{seed}", seed=seed, epochs=1) for name in ("here", "there") for seed in (1, 2)]
    groups = comparison.group_runs([read_folder(path) for path in paths])
    assert [[run.path for run in group.runs] for group in groups] == [paths[:2], paths[2:]]
    assert len({group.name for group in groups}) == 2
    assert capsys.readouterr().err == (
        f"elman: {paths[2]}, {paths[3]}: another of these runs has the same recipe, data and seed;"
        " runs with equal seeds are no replicates and are not averaged\n"
    )


def test_runs_continued_under_a_changed_recipe_are_a_group_of_their_own(make_run, capsys, drawn):
    paths = [make_run(name, seed=seed, epochs=1) for seed, name in enumerate(("fresh", "longer", "longer-too"))]
    change = {"kind": "event", "event": "recipe", "step": 1327, "epoch": 1.0}
    for path in paths[1:]:
        with (path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({**change, "message": "training.epochs from 3 to 4"}) + "\n")
    groups = comparison.group_runs([read_folder(path) for path in paths])
    assert [[run.path for run in group.runs] for group in groups] == [paths[:1], paths[1:]]
    assert comparison.differences([group.runs[0] for group in groups]) == [
        ("continued with", ["", "training.epochs from 3 to 4 (step 1327)"])
    ]
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_runs_on_other_text_are_not_compared(make_run, tmp_path):
    runs = [make_run("a"), make_run("b", digest="other")]
    text = read(write_report(runs, tmp_path / "both.html")).text
    assert "their perplexities cannot be compared" in text
    assert "Lowest is" not in text


def test_labels_are_no_longer_than_needed(make_run, drawn):
    paths = [make_run("x/run", epochs=1), make_run("y/run", epochs=1)]
    folders = [read_folder(path) for path in paths]
    assert comparison.run_labels(folders) == ["x/run", "y/run"]
    assert comparison.run_labels(folders[:1]) == ["run"]
    assert comparison.run_labels([folders[0], folders[0]]) == ["run (1)", "run (2)"]


def test_fine_tuned_runs_stand_beside_fine_tuned_numbers(make_run, drawn):
    run = make_run(epochs=1)
    text = (run / "recipe.toml").read_text().replace("[expected]", "[expected]\nfine_tuned_test = 57.3")
    (run / "recipe.toml").write_text(text)
    assert comparison.published(read_folder(run), "test") == 58.8
    with (run / "metrics.jsonl").open("a") as file:
        event = {"kind": "event", "step": 2, "epoch": 1.0, "event": "fine-tune", "message": "from step 1"}
        file.write(json.dumps(event) + "\n")
    assert comparison.published(read_folder(run), "test") == 57.3
    assert comparison.published(read_folder(run), "valid") == 60.7


@pytest.mark.slow
def test_only_the_page_needs_matplotlib_and_nothing_needs_torch():
    code = """
import sys
import elman.report.comparison, elman.report.folder, elman.report.metrics
import elman.drawing.heat_map, elman.report.tables
assert "matplotlib" not in sys.modules
import elman.report.page
assert "matplotlib.pyplot" not in sys.modules and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_the_configuration_is_folded(make_run):
    text = write_report([make_run(epochs=1)]).read_text()
    assert re.search(r"<details>\s*<summary>recipe.toml <span class=\"note\">\d+ lines</span></summary>", text)


@pytest.mark.slow
def test_the_predicted_loss_stands_beside_the_best(make_run):
    run = make_run()
    path = run / "metrics.jsonl"
    first, *rest = path.read_text().splitlines(keepends=True)
    event = {"kind": "event", "step": 20, "phase": 0, "event": "branch", "message": "so far", "seconds": 1.0}
    branches = [
        event | {"epoch": 1.5, "nll": None, "predicted": None},
        event | {"epoch": 3.0, "nll": 4.4, "predicted": math.log(63.4)},
    ]
    assert "predicted at" not in Page(write_report([run]).read_text()).text
    path.write_text(first + "".join(json.dumps(line) + "\n" for line in branches) + "".join(rest))
    assert "63.40 predicted at epoch 3" in Page(write_report([run]).read_text()).text


@pytest.mark.parametrize(
    ("tokenisation", "unit"), [("raw", "word"), ("characters", "character"), ("subwords", "piece"), ("bytes", "byte")]
)
def test_what_is_predicted_has_its_name(make_run, tokenisation, unit):
    run = make_run()
    data = json.loads((run / "data.json").read_text())
    (run / "data.json").write_text(json.dumps(data | {"tokenisation": tokenisation, "eos": "exact"}))
    text = read(write_report([run])).text
    assert f"test {unit}s, each scored once" in text
    assert f"Each {unit} of a passage" in text
    assert f" {unit}s" in text[text.index("Vocabulary of") :][:40]
    assert f"Trained on 929,589 {unit}s of" in text
    assert "exact ends a sentence" not in text


def test_unknown_words_are_shown_and_marked(make_run):
    run = make_run()
    words = [{"word": "the", "surprisal": 2.0}, {"word": "zeugma", "surprisal": 9.0, "unknown": True}]
    (run / "surprisal.json").write_text(json.dumps({"sentence": words}))
    page = write_report([run]).read_text()
    assert '<span class="word unknown"' in page
    assert "zeugma: 9.00 bits, probability 1 in 512, not in the vocabulary" in page
    assert "Underlined ones are not in the vocabulary" in page


def test_the_page_of_another_is_never_replaced(make_run):
    run = make_run()
    (run / "report.html").write_text("<p>mine</p>")
    with pytest.raises(UserError, match="is not a page that elman has written; choose another --out"):
        write_report([run])
    assert (run / "report.html").read_text() == "<p>mine</p>"
    (run / "report.html").unlink()
    write_report([run])
    write_report([run])
