"""Runs as models of transformers: the same log-probabilities, states, samples and tokens."""

import json
import shutil

import msgspec
import pytest
import torch

import elman
from elman import config
from elman.cli import main
from elman.config.text import TextOptions
from elman.data.grammar.reading import FOLDER
from elman.data.text.vocabulary import Vocabulary
from elman.export.hub import export_hub
from elman.network.build import build_model
from elman.tasks.experiment import Experiment
from elman.tasks.hub import fetched
from support import networks, text_runs
from support.commands import output, refusal, trained

pytestmark = pytest.mark.slow

transformers = pytest.importorskip("transformers", reason="models of Hugging Face need elman[hf]")


@pytest.fixture(scope="module", params=["words", "characters"])
def run(request, tmp_path_factory):
    return elman.load(trained(request.param, tmp_path_factory))


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("hub") / "model"
    assert main(["export", str(run.path), "--out", str(out), "--to", "hf", "--threads", "1"]) == 0
    return out


@pytest.fixture(scope="module")
def opened(folder):
    import elman.hf  # noqa: F401 - registers the kind of model

    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def assert_names_nothing_of(place, folder):
    for path in folder.iterdir():
        assert str(place).encode() not in path.read_bytes(), path


def test_the_folder_names_nothing_of_this_machine(run, folder, tmp_path_factory):
    here = tmp_path_factory.getbasetemp()
    assert str(here) in (run.path / "recipe.toml").read_text()
    assert_names_nothing_of(here, folder)
    found = elman.load(folder)
    assert (found.recipe.data.corpus, found.source) == ("corpus", "corpus")


def test_nor_where_the_rules_of_its_grammar_are(tmp_path, tmp_path_factory):
    shutil.copyfile(FOLDER / "elman-1991.grammar", tmp_path / "own.grammar")
    options = config.GrammarOptions(rules=str(tmp_path / "own.grammar"), sentences=60, valid=20, test=20)
    recipe = text_runs.recipe(epochs=1)
    recipe = msgspec.structs.replace(recipe, data=msgspec.structs.replace(recipe.data, grammar=options))
    Experiment(recipe, tmp_path / "run").train()
    export_hub(elman.load(tmp_path / "run"), tmp_path / "out")
    assert_names_nothing_of(tmp_path_factory.getbasetemp(), tmp_path / "out")
    assert elman.load(tmp_path / "out").recipe.data.grammar.rules == "own.grammar"


def ids_of(run, count=9):
    return torch.from_numpy(run.corpus().split("valid").tokens[:count].astype("int64")).unsqueeze(0)


def test_the_same_log_probabilities_and_states(run, opened):
    model, _ = opened
    ids = ids_of(run)
    expected, after = run.model.log_probs(ids.t(), run.begin())
    read = model(ids)
    torch.testing.assert_close(read.logits[0], expected[:, 0], rtol=1e-5, atol=1e-5)
    first = model(ids[:, :4])
    second = model(ids[:, 4:], state=first.state)
    torch.testing.assert_close(torch.cat([first.logits, second.logits], 1), read.logits, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(elman.network.state.leaves(after), second.state, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    loss = model(ids, labels=ids).loss
    assert loss.item() == pytest.approx(-expected[:-1, 0].gather(1, ids[0, 1:, None]).mean().item(), rel=1e-5)
    ignored = ids.clone()
    ignored[0, 3:] = -100
    assert model(ids, labels=ignored).loss.item() == pytest.approx(
        -expected[:2, 0].gather(1, ids[0, 1:3, None]).mean().item(), rel=1e-5
    )
    assert model(ids, logits_to_keep=1).logits.shape[1] == 1


def test_padding_is_not_read(run, opened):
    model, _ = opened
    ids = ids_of(run, 6)
    alone = model(ids)
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.int64), ids, torch.ones(1, 2, dtype=torch.int64)], 1)
    mask = torch.tensor([[0] * 3 + [1] * 6 + [0] * 2])
    read = model(padded, attention_mask=mask)
    torch.testing.assert_close(read.logits[:, 3:9], alone.logits, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(read.logits[:, 9:], alone.logits[:, [-1, -1]], rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(alone.state, read.state, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_without_options_texts_are_drawn(run, opened):
    """At most 100 tokens, none of those that are never said, from the token before a text to the one at its end."""
    found = opened[0].generation_config
    assert (found.do_sample, found.max_new_tokens) == (True, 100)
    assert (found.bos_token_id, found.eos_token_id) == (run.first, run.vocabulary.eos)
    assert found.suppress_tokens == (list(run.unspeakable) or None)


def test_greedy_and_beam_search(run, opened):
    """The state is carried and reordered: greedy search equals the loop, beams those without a state."""
    model, _ = opened
    ids, count = ids_of(run, 4), 5
    options = {"max_new_tokens": count, "do_sample": False, "eos_token_id": None, "suppress_tokens": None}
    found = model.generate(ids, **options)
    expected = ids.clone()
    for _ in range(count):
        log_probs, _ = run.model.log_probs(expected.t(), run.begin())
        expected = torch.cat([expected, log_probs[-1].argmax(-1, keepdim=True)], 1)
    assert found.tolist() == expected.tolist()
    with_state = model.generate(ids, num_beams=3, **options)
    assert with_state.tolist() == model.generate(ids, num_beams=3, use_cache=False, **options).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_beams_take_their_states_along(seed):
    """With large random weights beams differ and change places."""
    from elman.hf import ElmanConfig, ElmanForCausalLM

    recipe = config.Model(encoder=config.Lookup(size=6), core=config.Stack(sizes=(8,)), output=config.Output())
    torch.manual_seed(seed)
    model = ElmanForCausalLM(ElmanConfig(msgspec.to_builtins(recipe), 9, [1] * 9)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 1.0)
    options = {"max_new_tokens": 8, "do_sample": False, "num_beams": 4, "num_return_sequences": 4, "eos_token_id": None}
    options |= {"pad_token_id": 0, "return_dict_in_generate": True, "output_scores": True}
    with_state, without = (model.generate(torch.tensor([[1, 2, 3]]), use_cache=use, **options) for use in (True, False))
    assert with_state.sequences.tolist() == without.sequences.tolist()
    torch.testing.assert_close(with_state.sequences_scores, without.sequences_scores)


def test_the_tokens_are_those_of_the_run(run, opened):
    _, tokeniser = opened
    words = run.vocabulary.unk is not None
    text = "w1 w2  zebra w3\nw4" if words else "w1 w2  w3\nw4"
    encoded = tokeniser(text)["input_ids"]
    assert encoded == [run.first, *run.encode(text)]
    if not words:
        with pytest.raises(ValueError, match="'z' is not in the vocabulary"):
            tokeniser("z")
    assert tokeniser.decode(encoded[1:]) == run.tokeniser.decode(run.vocabulary.decode(encoded[1:]))


@pytest.mark.parametrize(
    ("eos", "tokenisation", "tokens"),
    [
        ("line", "words", ["a", "b", "<eos>", "c", "<eos>", "<eos>", "a"]),
        ("paragraph", "words", ["a", "b", "c", "<eos>", "a"]),
        ("none", "words", ["a", "b", "c", "a"]),
        ("exact", "characters", ["a", " ", "b", "<eos>", "c", "<eos>", "<eos>", "a"]),
    ],
)
def test_line_breaks_are_those_of_the_data(eos, tokenisation, tokens, tmp_path):
    from elman.hf import ElmanTokenizer

    Vocabulary(("a", "b", "c", " ", "<eos>"), (1,) * 5).save(tmp_path / "vocabulary.tsv")
    options = msgspec.to_builtins(TextOptions(tokenisation=tokenisation, eos=eos))
    tokeniser = ElmanTokenizer(str(tmp_path / "vocabulary.tsv"), options=options)
    assert tokeniser.tokenize("a b\nc\n\na") == tokens


def test_the_folder_is_still_a_run(run, folder, capsys):
    again = elman.load(folder)
    ids = ids_of(run)
    assert torch.equal(again.model.log_probs(ids.t(), again.begin())[0], run.model.log_probs(ids.t(), run.begin())[0])
    assert json.loads((folder / "data.json").read_text())["source"] == "corpus", "not where it is on this machine"
    assert json.loads(output(capsys, "info", folder, "--json"))
    card = (folder / "README.md").read_text()
    assert card.startswith("---\n")
    assert "perplexity" in card


def test_a_folder_without_the_course_of_training_is_written_again(folder, tmp_path, capsys):
    again = tmp_path / "again"
    assert main(["export", str(folder), "--out", str(again), "--to", "hf", "--threads", "1"]) == 0
    capsys.readouterr()
    assert "| test |" in (again / "README.md").read_text()
    assert json.loads((again / "results.json").read_text()) == json.loads((folder / "results.json").read_text())


def test_what_transformers_saves_it_opens(opened, tmp_path):
    model, tokeniser = opened
    model.save_pretrained(tmp_path)
    tokeniser.save_pretrained(tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = torch.tensor([[0, 1, 2, 1]])
    assert torch.equal(again(ids).logits, model(ids).logits)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path)("w1 w2") == tokeniser("w1 w2")


@pytest.mark.parametrize(
    ("choice", "contexts"),
    [("adaptive", "doc"), ("tree-random-tied", "mos"), ("rare-class", "single"), ("mixtape-8-tied", "single")],
)
def test_outputs_with_tables_are_stored(choice, contexts, tmp_path):
    """What is drawn or derived when a network is built, such as clusters, comes from the file."""
    from elman.hf import ElmanConfig, ElmanForCausalLM

    network = networks.choice_model(choice, contexts).float()
    recipe = config.Model(
        encoder=config.Lookup(size=4),
        core=config.Stack(sizes=(5, 4)),
        output=config.Output(contexts=networks.CONTEXTS[contexts], choice=networks.CHOICES[choice]),
    )

    network_facts = msgspec.to_builtins(recipe, str_keys=True)
    model = ElmanForCausalLM(ElmanConfig(network_facts, len(networks.COUNTS), networks.COUNTS))
    model.load_state_dict(network.state_dict())
    model.save_pretrained(tmp_path)
    again = ElmanForCausalLM.from_pretrained(tmp_path)
    ids = torch.tensor([[0, 5, 2, 12]])
    torch.testing.assert_close(again(ids).logits, model.eval()(ids).logits)
    assert build_model(recipe, len(networks.COUNTS), networks.COUNTS).state_dict().keys() == again.state_dict().keys()


def test_a_model_of_spelling_is_stored(tmp_path):
    """transformers builds networks without memory before it fills them; what words are spelled with is made again."""
    from elman.hf import ElmanConfig, ElmanForCausalLM

    words = ["<eos>", "<unk>", "cat", "cats", "dog"]
    recipe = config.Model(
        encoder=config.Characters(size=3, widths=(1, 2), filters=(3, 4)),
        core=config.Stack(sizes=(5,)),
        output=config.Output(),
    )
    model = ElmanForCausalLM(ElmanConfig(msgspec.to_builtins(recipe, str_keys=True), 5, [1] * 5, words)).eval()
    model.save_pretrained(tmp_path)
    again, ids = ElmanForCausalLM.from_pretrained(tmp_path), torch.tensor([[0, 2, 3, 1]])
    assert torch.equal(again(ids).logits, model(ids).logits)
    with torch.no_grad():
        assert torch.equal(again(ids).logits, model(ids).logits)


def test_a_run_from_the_hub(run, folder, tmp_path, monkeypatch, capsys):
    copy = shutil.copytree(folder, tmp_path / "copy")
    asked = []

    def download(name):
        asked.append(name)
        if name != "someone/model":
            raise OSError("404: no such repository\nmore")
        return str(copy)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert elman.load("hf://someone/model").path == copy
    assert fetched("runs/demo") == elman.tasks.hub.Path("runs/demo")
    (tmp_path / "text").write_text("w1\n")
    line = refusal(capsys, "score", "hf://someone/else", tmp_path / "text")
    assert "it cannot be fetched from the Hub (404: no such repository)" in line
    assert json.loads(output(capsys, "info", "hf://someone/model", "--json"))
    assert asked == ["someone/model", "someone/else", "someone/model"]
