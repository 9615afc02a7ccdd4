"""lm-evaluation-harness: the answers of a run beside its own scores, and the class that the harness calls."""

import json
import sys
import types

import numpy as np
import pytest
import torch

import elman
from elman.data.minimal_pairs import Pair
from elman.errors import UserError
from elman.evaluation.minimal_pairs import accuracies
from elman.export import lm_eval as adapter
from elman.export.harness import MAX_TOKENS, Answers
from elman.tasks.text.suites import judge
from support.commands import trained

pytestmark = pytest.mark.slow

DRAW = np.random.default_rng(3)
PAIRS = [
    (" ".join(f"w{n}" for n in DRAW.integers(0, 20, 5)), " ".join(f"w{n}" for n in DRAW.integers(0, 20, 5)))
    for _ in range(30)
]


@pytest.fixture(scope="module", params=["words", "characters"])
def run(request, tmp_path_factory):
    return elman.load(trained(request.param, tmp_path_factory))


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    return elman.load(trained("words", tmp_path_factory))


def total(run, text):
    """The log-probability of a line with its `<eos>`, by the run itself."""
    ((_, log_probs),) = run.score([text + "\n"])
    return float(log_probs.sum(dtype=np.float64))


def test_a_whole_text_counts_its_end(run):
    found = Answers(run).texts([good for good, _ in PAIRS])
    np.testing.assert_allclose(found, [total(run, good) for good, _ in PAIRS], rtol=1e-5)
    without = Answers(run, end="never").texts(["w1 w2"])[0]
    model, ids = run.read("w1 w2")
    log_probs, _ = model.log_probs(torch.tensor([[run.first], *([one] for one in ids)]), model.begin(1))
    expected = log_probs[:-1, 0].gather(1, torch.tensor(ids)[:, None]).sum().item()
    assert without == pytest.approx(expected, rel=1e-5)
    assert Answers(run).texts(["w1 w2"])[0] == pytest.approx(
        expected + log_probs[-1, 0, run.vocabulary.eos].item(), rel=1e-5
    )


def test_a_continuation_is_the_rest_of_the_whole(run):
    answers = Answers(run, end="never", batch_size=3)
    contexts = ["w1 w2", "w3\nw4", "w5 w6\n"]
    found = answers.continuations([(context, " w7 w8") for context in contexts])
    for context, one in zip(contexts, found, strict=True):
        whole, before = answers.texts([context + " w7 w8", context])
        assert one.log_prob == pytest.approx(whole - before, rel=1e-4)
    always = Answers(run, end="always").continuations([("w1 w2", " w7 w8")])[0]
    both = Answers(run).texts(["w1 w2 w7 w8"])[0]
    assert always.log_prob == pytest.approx(both - answers.texts(["w1 w2"])[0], rel=1e-4)


def test_batches_change_nothing(run):
    pairs = [(good, f" {bad}") for good, bad in PAIRS]
    one, many = (Answers(run, batch_size=size).continuations(pairs) for size in (1, 7))
    np.testing.assert_allclose([a.log_prob for a in one], [a.log_prob for a in many], rtol=1e-5)
    assert [a.greedy for a in one] == [a.greedy for a in many]


def test_long_texts_carry_their_state(run, monkeypatch):
    text = "\n".join(good for good, _ in PAIRS)
    whole = Answers(run).texts([text])
    monkeypatch.setattr("elman.evaluation.scoring.WINDOW", 16)
    np.testing.assert_allclose(Answers(run).texts([text]), whole, rtol=1e-5)
    lines = np.concatenate([log_probs for _, log_probs in run.score(text + "\n", document=True)])
    assert whole[0] == pytest.approx(lines.sum(dtype=np.float64), rel=1e-5)


def test_greedy_continuations_are_those_that_are_generated(run):
    answers = Answers(run, end="never", batch_size=2)
    contexts = ["w1 w2 w3", "w4", "w5 w6"]
    texts = answers.generate([(context, {"until": ["\n"], "max_gen_toks": 4}) for context in contexts])
    written = [pair for pair in zip(contexts, texts, strict=True) if pair[1]]
    assert written
    assert all(one.greedy for one in answers.continuations(written))
    other = [(context, f"{text} w0 w0 w0 w0") for context, text in written]
    assert not all(one.greedy for one in answers.continuations(other))
    alone = [Answers(run).generate([(context, {"until": "\n", "max_gen_toks": 4})])[0] for context in contexts]
    assert alone == texts


def test_where_generation_ends(words):
    answers = Answers(words)
    (whole,) = answers.generate([("w1", {"max_gen_toks": 12})])
    assert len(words.encode(whole)) in (11, 12)  # an `<eos>` at the very end is not read
    stop = whole.split()[2]
    (cut,) = answers.generate([("w1", {"until": [stop, "never"], "max_gen_toks": 12})])
    assert cut == whole[: whole.find(stop)]
    sampled = [
        Answers(words, seed=seed).generate([("w1", {"temperature": 2.0, "do_sample": True, "top_k": 9})] * 2)
        for seed in (0, 0, 1)
    ]
    assert sampled[0] == sampled[1] != sampled[2]
    assert "<unk>" not in " ".join(sampled[0])
    assert len(sampled[0][0].split()) > MAX_TOKENS // 2
    with pytest.raises(UserError, match="--top-p"):
        answers.generate([("w1", {"do_sample": True, "top_p": 2.0})])


def test_accuracy_on_minimal_pairs_is_ours(words, capsys):
    """Where a model cannot tell two sentences apart, the harness takes the first; that is said."""
    texts = [*PAIRS, ("w1 zebra", "w1 giraffe"), ("zebra w2 w3", "okapi w2 w3")]
    judged = judge(words, [Pair(good, bad, "all") for good, bad in texts])
    ours = accuracies(*judged)[-1]
    requests = [("", text) for pair in texts for text in pair]
    documents = [place // 2 for place in range(len(requests))]
    found = [one.log_prob for one in Answers(words).continuations(requests, documents)]
    right = sum(good >= bad for good, bad in zip(found[::2], found[1::2], strict=True))
    assert ours.same == 2
    assert right - ours.same == ours.accuracy.successes
    known = [one for pair, one in zip(judged.coded, judged.log_probs, strict=True) if not pair.same]
    np.testing.assert_allclose(np.reshape(found, (-1, 2))[:-2], known, rtol=1e-5)
    told = capsys.readouterr().err
    assert "2 of 32 documents have choices that the model reads as the same" in told


def test_unknown_words_are_said_once(words, capsys):
    answers = Answers(words)
    for _ in range(3):
        answers.texts(["w1 zebra"])
    told = capsys.readouterr().err
    assert told.count("1 of 2 words (50.0 %) is not in the vocabulary, read as <unk>: zebra") == 1


def test_a_character_that_cannot_be_read_is_refused(tmp_path_factory):
    path = trained("characters", tmp_path_factory)
    with pytest.raises(UserError, match="'z' is not in the voc"):
        Answers(elman.load(path)).texts(["w1 z"])
    with pytest.raises(UserError, match="end=soon: write auto"):
        Answers(None, end="soon")


class StubLM:
    """What the harness' class of models has."""

    def __init__(self):
        self.cache_hook = types.SimpleNamespace(add_partial=lambda *facts: self.kept.append(facts))
        self.kept = []


class Request(types.SimpleNamespace):
    pass


@pytest.fixture
def harness(monkeypatch):
    """A stub of the package; its registry."""
    registry, names = {}, ("lm_eval", "lm_eval.api", "lm_eval.api.model", "lm_eval.api.registry", "lm_eval.models")
    modules = {name: types.ModuleType(name) for name in names}

    def register_model(name):
        if name in registry:
            raise ValueError(f"{name} is registered")
        return lambda kind: registry.setdefault(name, kind)

    modules["lm_eval.api.model"].LM = StubLM
    modules["lm_eval.api.registry"].register_model = register_model
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(vars(adapter), "ElmanLM", raising=False)
    yield registry
    vars(adapter).pop("ElmanLM", None)


def requests(*arguments):
    return [Request(args=one, task_name="task", doc_id=place) for place, one in enumerate(arguments)]


def test_the_class_that_the_harness_calls(words, harness):
    adapter.register()
    adapter.register()  # as where the entry point was found before
    model = harness["elman"](run=str(words.path), batch_size="auto", max_batch_size=None, device=None)
    assert model.answers.batch_size == adapter.ANY_SIZE
    pairs = requests(("", "w1 w2"), ("w1", " w2"))
    found = model.loglikelihood(pairs)
    assert found == [tuple(one) for one in Answers(words).continuations([one.args for one in pairs])]
    assert isinstance(found[0], tuple)
    assert model.loglikelihood_rolling(requests(("w1 w2",))) == [found[0][0]]
    texts = model.generate_until(requests(("w1", {"until": ["\n"], "max_gen_toks": 3}), ("w1", ["\n"])))
    assert texts[1].startswith(texts[0])
    assert [kind for kind, *_ in model.kept] == [
        *["loglikelihood"] * 2,
        "loglikelihood_rolling",
        *["generate_until"] * 2,
    ]
    assert model.kept[0][1:] == (("", "w1 w2"), found[0])
    only = harness["elman"](run=str(words.path), end="never", batch_size=4, device="cuda:0")
    assert only.answers.batch_size == 4
    assert only.loglikelihood_rolling(requests(("w1 w2",)))[0] > found[0][0]
    with pytest.raises(UserError, match="not a run folder"):
        harness["elman"](run="nowhere")


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    monkeypatch.delitem(vars(adapter), "ElmanLM", raising=False)
    assert adapter.main() == 2
    assert "pip install 'elman[lm-eval]'" in capsys.readouterr().err
    with pytest.raises(AttributeError, match="has no attribute 'Other'"):
        _ = adapter.Other


def test_the_harness_itself(words, tmp_path, monkeypatch):
    """A task of minimal pairs from a local file, through the evaluation of lm_eval."""
    lm_eval = pytest.importorskip("lm_eval", reason="the harness needs elman[lm-eval]")
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    rows = tmp_path / "pairs.jsonl"
    rows.write_text("".join(json.dumps({"good": good, "bad": bad}) + "\n" for good, bad in PAIRS))
    task = {
        "task": "pairs",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"train": str(rows)}},
        "output_type": "multiple_choice",
        "validation_split": "train",
        "doc_to_text": "",
        "doc_to_target": 0,
        "doc_to_choice": "{{[good, bad]}}",
        "metric_list": [{"metric": "acc"}],
    }
    found = lm_eval.simple_evaluate(
        adapter.ElmanLM(run=str(words.path)), tasks=[task], task_manager=TaskManager(), bootstrap_iters=0
    )
    ours = accuracies(*judge(words, [Pair(good, bad, "all") for good, bad in PAIRS]))[-1]
    assert found["results"]["pairs"]["acc,none"] == pytest.approx(ours.accuracy.share)
