"""--temperature of elman evaluate and elman score: given, tuned, and where it does not belong."""

import json
import shutil

import numpy as np
import pytest
import torch

from elman.cli import main
from elman.evaluation.perplexity import average_probabilities, reading, score_of
from elman.evaluation.temperature import best_temperature
from elman.tasks.text.ensemble import own_counts
from elman.tasks.text.run import TextRun
from support.commands import column, output, refusal, table, trained


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


def tempered(run, temperature, split="test"):
    """The log-probabilities of a split, by the definition."""
    loaded = TextRun(run)
    tokens = loaded.corpus().split(split).tokens
    inputs = torch.from_numpy(np.concatenate([[loaded.first], tokens[:-1]])).unsqueeze(1)
    with torch.no_grad():
        log_probs, _ = loaded.model.log_probs(inputs, loaded.begin())
    found = torch.log_softmax(log_probs / temperature, -1)
    return found.squeeze(1).gather(1, torch.from_numpy(tokens.astype(np.int64)).unsqueeze(1)).squeeze(1).numpy()


def test_a_split_is_evaluated_at_a_temperature(capsys, run):
    found = json.loads(output(capsys, "evaluate", run, "--temperature", "1.6", "--json"))
    assert found["nll"] == pytest.approx(score_of(tempered(run, 1.6)).nll, rel=1e-5)
    assert found["settings"] == {"temperature": 1.6}
    assert "settings" not in json.loads(output(capsys, "evaluate", run, "--json"))


def test_the_temperature_is_tuned_on_the_validation_text(capsys, run):
    loaded = TextRun(run)
    valid = loaded.split(loaded.corpus(), "valid")
    expected = best_temperature(*reading(loaded.model, valid, loaded.first))  # of one stream, as test is evaluated
    assert main(["evaluate", str(run), "--temperature", "tune", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["settings"]["temperature"] == pytest.approx(expected, abs=1e-4)
    assert f"temperature of {run}: {found['settings']['temperature']:g}, tuned on" in captured.err
    assert found["nll"] == pytest.approx(score_of(tempered(run, expected)).nll, rel=1e-5)
    assert main(["evaluate", str(run), "--temperature", "tune", "--split", "valid"]) == 0
    assert "tuned on the split that is evaluated" in capsys.readouterr().err


def test_the_tokens_that_settings_are_chosen_on_are_those_that_count(capsys, run, tmp_path):
    """A recipe with data.evaluation.skip_first leaves one of them out."""
    size = len(TextRun(run).corpus().split("valid").tokens)
    copy = shutil.copytree(run, tmp_path / "copy")
    recipe = (copy / "recipe.toml").read_text()
    assert "skip_first = false" in recipe
    (copy / "recipe.toml").write_text(recipe.replace("skip_first = false", "skip_first = true"))
    assert main(["evaluate", str(copy), "--mix", "1-gram", "--temperature", "tune", "--json"]) == 0
    err = capsys.readouterr().err
    assert f"tuned on {size - 1} tokens of valid" in err
    assert f"(EM on {size - 1} tokens, valid)" in err


def test_networks_of_a_mixture_have_the_temperature_and_counts_do_not(capsys, run):
    found = json.loads(
        output(capsys, "evaluate", run, run, "--ensemble", "--mix", "3-gram=0.25", "--temperature", "1.6", "--json")
    )
    loaded = TextRun(run)
    test = loaded.split(loaded.corpus(), "test")
    counts = own_counts(loaded, 3).log_prob(test.tokens, [loaded.first])
    expected = average_probabilities([tempered(run, 1.6), counts], [0.75, 0.25])
    assert found["nll"] == pytest.approx(score_of(expected).nll, rel=1e-5)
    assert found["members"][0]["settings"] == {"temperature": 1.6}
    assert "settings" not in found["members"][-1]


def test_surprisals_are_at_a_temperature(capsys, run, tmp_path):
    """Of tokens, and of words with the entropy of their distribution."""
    loaded = TextRun(run)
    text = tmp_path / "text.txt"
    text.write_text(" ".join(loaded.vocabulary.words[3:8]) + "\n")
    loaded.model.output.temperature = 2.0
    _, expected = next(loaded.score(text.read_text()))
    rows = table(output(capsys, "score", run, text, "--temperature", "2"))
    np.testing.assert_allclose([float(value) for value in column(rows, "log_prob")], expected, atol=1e-4)
    plain = column(table(output(capsys, "score", run, text, "--by", "word")), "entropy")
    flatter = column(table(output(capsys, "score", run, text, "--by", "word", "--temperature", "2")), "entropy")
    assert all(float(more) > float(less) for more, less in zip(flatter, plain, strict=True))


@pytest.mark.parametrize("value", ["0", "nan", "hot", "21"])
def test_an_impossible_temperature_is_refused(capsys, run, value):
    assert "--temperature" in refusal(capsys, "evaluate", run, "--temperature", value)


def test_it_does_not_go_with_adaptation(capsys, run, tmp_path):
    assert "--method cache" in refusal(capsys, "evaluate", run, "--temperature", "2", "--method", "cache")
    text = tmp_path / "text.txt"
    text.write_text("a\n")
    assert "--adapt" in refusal(capsys, "score", run, text, "--temperature", "2", "--adapt")
