"""The functions of the package: train, load, evaluate, generate, score."""

import sys
import time
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch

import elman
from elman import config
from elman.config.text import TextData
from elman.data.hypotheses import Hypothesis
from elman.errors import UserError
from elman.evaluation.scoring import Unknown
from elman.network.device import faster_threads
from elman.nn import ctc_beam
from elman.tasks import interface
from elman.tasks.text import rescoring
from elman.tasks.text.run import TextRun
from support import commands, text_runs
from support.commands import output, table


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interface")
    (folder / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe()))
    data = text_runs.write_corpus(folder / "corpus")
    return elman.train(folder / "recipe.toml", folder / "run", data=data, settings=["training.epochs=1"])


@pytest.mark.slow
def test_training_gives_the_run_and_its_results(trained):
    assert isinstance(trained.run, TextRun)
    assert trained.run.recipe.training.epochs == 1
    assert [row.split for row in trained.results] == ["valid", "test"]
    assert isinstance(elman.load(trained.run.path), elman.Run)


def test_evaluation_agrees_with_training(trained):
    for row in trained.results:
        assert elman.evaluate(trained.run, row.split).perplexity == row.perplexity
    first = elman.evaluate(trained.run.path, "test", options=elman.EvaluationOptions(skip_first=True))
    assert first.tokens == trained.results[1].tokens - 1
    with pytest.raises(elman.UserError, match="--beam does not belong to a run on text"):
        elman.evaluate(trained.run, options=elman.EvaluationOptions(beam=3))


def test_generate_gives_the_text_of_its_seed(trained):
    made = elman.generate(trained.run, "w1 w2", count=5, seed=1)
    assert len(made.tokens) == 5
    assert made == elman.generate(str(trained.run.path), "w1 w2", count=5, seed=1)


def test_evaluation_keeps_the_split_and_the_data_of_its_options(trained, tmp_path):
    (tmp_path / "other.txt").write_text("w1 w2 w3\nw4\n")
    options = elman.EvaluationOptions(split="valid")
    assert elman.evaluate(trained.run, options=options) == elman.evaluate(trained.run, "valid")
    assert elman.evaluate(trained.run, "test", options=options).split == "test"
    other = elman.EvaluationOptions(split="all", data=tmp_path / "other.txt")
    assert elman.evaluate(trained.run, options=other).tokens == 6


@pytest.mark.parametrize(("name", "value"), [("streams", 0), ("warm_up", -1), ("beam", 0)])
def test_options_of_evaluation_have_ranges(name, value):
    with pytest.raises(elman.UserError, match=f"--{name.replace('_', '-')} is {value}; it must be"):
        elman.EvaluationOptions(**{name: value})


def test_a_name_of_the_hub_is_one_for_every_function(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("elman.tasks.hub._of_hub", lambda name: trained.run.path if name == "someone/model" else None)
    assert elman.evaluate("someone/model", "valid").split == "valid"
    assert elman.generate("someone/model", count=1) == elman.generate(trained.run, count=1)


def test_a_sample_has_no_unknown_words_unless_they_are_asked_for(tmp_path_factory):
    run, sampling = elman.load(commands.trained("words", tmp_path_factory)), elman.Sampling(temperature=100.0)
    assert "<unk>" not in elman.generate(run, count=300, sampling=sampling).tokens
    assert "<unk>" in elman.generate(run, count=300, sampling=sampling, unk=True).tokens


@pytest.mark.parametrize("wrong", [{"top_k": 0}, {"top_p": 0.0}, {"temperature": -1.0}])
def test_a_sampling_out_of_range_is_refused(trained, wrong):
    with pytest.raises(elman.UserError, match="it must be"):
        elman.generate(trained.run, count=1, sampling=elman.Sampling(**wrong))


@pytest.mark.parametrize("wrong", [None, float("nan"), b"w1"])
def test_what_is_no_text_is_not_scored(trained, wrong):
    with pytest.raises(elman.UserError, match="text 2 is no text but"):
        elman.score(trained.run, ["w1", wrong])


def test_the_home_folder_may_be_written_as_a_tilde(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "recipe.toml").write_text(config.dump_recipe(text_runs.recipe()))
    made = elman.train("~/recipe.toml", "~/run", data=trained.run.source, settings=["training.epochs=1"])
    assert made.run.path == tmp_path / "run"
    assert elman.load("~/run").saved == made.run.saved


def test_settings_are_not_ignored_beside_a_recipe_that_is_read(trained, tmp_path):
    with pytest.raises(elman.UserError, match="settings change a recipe that is a file"):
        elman.train(text_runs.recipe(), tmp_path / "run", data=trained.run.source, settings=["training.epochs=1"])
    with pytest.raises(elman.UserError, match="settings are a list of texts"):
        elman.train(trained.run.path / "recipe.toml", tmp_path / "run", settings="training.epochs=1")
    assert not (tmp_path / "run").exists()


def test_an_unknown_device_is_refused(trained, tmp_path):
    assert elman.load(trained.run.path, device="auto").device.type in ("cpu", "cuda")
    with pytest.raises(elman.UserError, match="--device gpu: unknown"):
        elman.load(trained.run.path, device="gpu")
    with pytest.raises(elman.UserError, match="--device gpu: unknown"):
        elman.Experiment(text_runs.recipe(), str(tmp_path / "run"), data=trained.run.source, device="gpu")


def test_all_names_of_the_package_are_listed():
    assert set(elman.__all__) <= set(dir(elman))


def test_score_gives_log_probabilities_of_every_token(trained):
    (one, two) = elman.score(trained.run, ["w1 w2 w3", "w4"])
    assert one.tokens == ["w1", "w2", "w3", "<eos>"]
    assert len(two.log_probs) == 2
    assert np.all(one.log_probs < 0)
    assert config.Recipe is elman.Recipe


RULES = {
    "words, paragraphs": TextData(tokenisation="raw", eos="paragraph", min_count=2),
    "words, lines": TextData(tokenisation="raw", min_count=2),
    "words, no ends": TextData(eos="none", min_count=2),
    "characters, lines": TextData(tokenisation="characters"),
    "characters, exact": TextData(tokenisation="characters", eos="exact"),
}


@pytest.fixture(scope="module", params=RULES)
def ruled(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ruled")
    recipe = text_runs.recipe(epochs=1)
    data = msgspec.structs.replace(RULES[request.param], evaluation=recipe.data.evaluation)
    corpus = text_runs.write_corpus(folder / "corpus", {"train": 30, "valid": 10, "test": 10})
    return elman.train(msgspec.structs.replace(recipe, data=data), folder / "run", data=corpus).run


SENTENCES = ["w1 w2", "", "w3 w1", "", "", "w2\nw1"]


@pytest.mark.parametrize("document", [False, True])
def test_every_text_of_a_list_has_one_result(ruled, document):
    scored = elman.score(ruled, SENTENCES, document=document)
    assert len(scored) == len(SENTENCES)
    ends = ruled.options.eos != "none"
    assert [one.tokens[-1:] == ["<eos>"] for one in scored] == [ends] * len(SENTENCES)
    assert scored[1].tokens == (["<eos>"] if ends else [])
    assert all(len(one.log_probs) == len(one.tokens) for one in scored)


def test_score_and_scorer_agree_on_every_text(ruled):
    scored = elman.score(ruled, SENTENCES)
    columns = elman.Scorer(ruled.path)(SENTENCES)
    assert columns["tokens"] == [len(one.tokens) for one in scored]
    totals = [float(one.log_probs.sum(dtype=np.float64)) for one in scored]
    assert columns["log_prob"] == pytest.approx(totals, rel=1e-5)
    assert all((total < 0) == bool(one.tokens) for total, one in zip(totals, scored, strict=True))


def test_the_command_scores_the_lines_of_a_file_as_the_texts_of_a_list(ruled, capsys, tmp_path):
    lines = [one for one in SENTENCES if one and "\n" not in one]
    between = "\n\n" if ruled.options.eos == "paragraph" else "\n"
    (tmp_path / "text.txt").write_text(between.join(lines) + "\n")
    rows = table(output(capsys, "score", ruled.path, tmp_path / "text.txt", "--by", "sentence"))
    totals = [float(one.log_probs.sum(dtype=np.float64)) for one in elman.score(ruled, lines)]
    assert [float(row["log_prob"]) for row in rows] == pytest.approx(totals, rel=1e-4)
    for text in (between.join(lines), between.join(lines) + "\n"):
        found = [float(one.log_probs.sum(dtype=np.float64)) for one in elman.score(ruled, text)]
        assert found == pytest.approx(totals, rel=1e-5)


def test_hypotheses_are_scored_as_the_texts_of_a_list(ruled):
    read = rescoring.read_hypotheses(ruled, [Hypothesis("a", (), text) for text in SENTENCES])
    totals = [float(one.log_probs.sum(dtype=np.float64)) for one in elman.score(ruled, SENTENCES)]
    assert rescoring.log_probs_fresh(ruled, read, Unknown()) == pytest.approx(totals, rel=1e-5)


def test_a_network_without_finite_numbers_chooses_no_hypothesis(ruled, monkeypatch):
    broken = torch.full_like(ruled.model.output.choice.bias, torch.nan)
    monkeypatch.setattr(ruled.model.output.choice.bias, "data", broken)
    read = rescoring.read_hypotheses(ruled, [Hypothesis("a", (), text) for text in SENTENCES])
    with pytest.raises(UserError, match="probabilities are not numbers"):
        rescoring.log_probs_fresh(ruled, read, Unknown())


def test_the_ids_of_a_text_have_no_end(trained):
    ids, eos = trained.run.vocabulary.ids, trained.run.vocabulary.eos
    for text, words in (("w1 w2 w3", "123"), ("w1 w2 w3\n", "123"), ("w1", "1"), ("w1\n", "1"), ("", "")):
        assert trained.run.encode(text) == [ids[f"w{number}"] for number in words]
    assert trained.run.encode("w1\nw2\n") == [ids["w1"], eos, ids["w2"]]
    assert trained.run.encode("w1\n\n") == [ids["w1"], eos]


def test_no_more_next_words_than_there_are(trained):
    size = len(trained.run.vocabulary)
    found = trained.run.next_words("w1 ", size + 1)
    assert len(found) == len({word for word, _ in found}) == size
    assert sum(probability for _, probability in found) == pytest.approx(1, rel=1e-5)
    assert [probability for _, probability in found] == sorted((one for _, one in found), reverse=True)
    assert trained.run.next_words("w1 ") == trained.run.next_words("w1") == found[:10]
    assert trained.run.next_words("w1 ", 1) == found[:1]


def test_a_step_reads_a_word(trained):
    """Word by word: what comes next is as after the whole prompt; two words may come at once, and nothing is none."""
    run, state = trained.run, trained.run.begin()
    for word in ("<eos>", "w1", "w4 w2", "w3"):
        log_probs, state = run.step(word, state)
        assert log_probs.shape == (len(run.vocabulary),)
    found = {word: log_probs[run.vocabulary.ids[word]].exp().item() for word in run.vocabulary.words}
    assert found == pytest.approx(dict(run.next_words("w1 w4 w2 w3", len(found))), rel=1e-5)
    with pytest.raises(elman.UserError, match="'' has no token that the model could read; give a word"):
        run.step("", state)


def test_a_run_is_the_prior_of_a_beam(trained):
    """For each label what `step` gives, times the weight, and the bonus; for the end neither bonus nor label."""
    run, labels = trained.run, ["", "w1", "w4", "w2"]
    prior = run.prior(labels, weight=0.5, bonus=2.0)
    log_probs, state = run.step("<eos>", run.begin())
    for said in ((), (1,), (1, 3)):
        if said:
            log_probs, state = run.step(labels[said[-1]], state)
        expected = [0.5 * log_probs[run.vocabulary.ids[word]].item() + 2 for word in ("<eos>", *labels[1:])]
        assert prior(said) == pytest.approx([expected[0] - 2, *expected[1:]], rel=1e-5)
    found = ctc_beam(torch.randn(5, 4).log_softmax(-1), prior=prior)[0]
    (_, scored), *_ = elman.score(run, [" ".join(labels[k] for k in found.labels)])
    assert found.prior == pytest.approx(0.5 * sum(scored.tolist()) + 2 * len(found.labels), rel=1e-4)
    with pytest.raises(elman.UserError, match="'w1 w2' is no token of this run"):
        run.prior(["", "w1 w2"])


@pytest.mark.parametrize(
    ("tokenisation", "prompt", "begun"),
    [
        ("raw", "a b ", ("a b", (1,))),
        ("raw", "a b  ", ("a b ", (1,))),
        ("raw", "a b", ("a b", ())),
        ("subwords", "a ", ("a", (1,))),
        ("subwords", " ", (" ", ())),
        ("subwords", "", ("", ())),
        ("characters", "a ", ("a ", ())),
        ("bytes", "a ", ("a ", ())),
    ],
)
def test_the_last_blank_of_a_prompt_begins_the_next_word(tokenisation, prompt, begun):
    run = SimpleNamespace(options=TextData(tokenisation=tokenisation), blanks=(1,))
    assert TextRun.begun(run, prompt) == begun


@pytest.mark.slow
def test_threads_hold_for_the_training_and_its_course_is_printed(trained, tmp_path, monkeypatch, capsys):
    before, used = torch.get_num_threads(), []
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    arguments = {"data": trained.run.source, "settings": ["training.epochs=1"]}
    recipe = trained.run.path / "recipe.toml"
    elman.train(recipe, tmp_path / "one", threads=1, progress=True, **arguments)
    assert used == [1, before]
    printed = capsys.readouterr().err
    assert "training: 1 epochs" in printed
    assert "validation" in printed
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(interface, "faster_threads", lambda: 1)
    elman.train(recipe, tmp_path / "two", **arguments)
    assert used[2:] == [1, before]
    assert "validation" in capsys.readouterr().err
    with pytest.raises(UserError, match="threads = 0"):
        elman.train(recipe, tmp_path / "three", threads=0, **arguments)


def test_the_course_is_printed_every_ten_seconds(monkeypatch, capsys):
    clock = iter([100, 100, 109, 111, 111, 120, 122, 122])  # begun and said; 9 seconds; 11, said; 9; 11, said
    monkeypatch.setattr(interface, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    lines = interface._Lines()
    lines.begin(2, 50, None)
    for step in (1, 2, 3, 4):
        lines.step(SimpleNamespace(step=step), 10, 1.5)
    printed = capsys.readouterr().err.splitlines()
    assert "2 epochs, about 100 steps" in printed[0]
    assert printed[1:] == ["step 2 of 100: loss 1.500", "step 4 of 100: loss 1.500"]


def test_several_threads_are_used_where_they_are_faster(monkeypatch):
    number, clock = [2], [0.0]
    monkeypatch.setattr(torch, "get_num_threads", lambda: number[0])
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: number.__setitem__(0, threads))
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    cost = {1: 1.0, 2: 0.5}

    def multiply(*_):
        clock[0] += cost[number[0]]
        return torch.zeros(1)

    monkeypatch.setattr(torch.nn.functional, "linear", multiply)
    assert (faster_threads(), number) == (2, [2])
    cost[2] = 0.95
    assert (faster_threads(), number) == (1, [2])
    number[0] = 1
    assert faster_threads() == 1
