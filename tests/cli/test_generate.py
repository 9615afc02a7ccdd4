"""elman generate: several samples, sentences, files, fresh seeds, and a conversation by turns."""

import io
import json
import re

import pytest

from elman.cli import main
from elman.config.inference import Sampling
from elman.decoding import sampling
from elman.decoding.sampling import read
from elman.tasks.text.run import TextRun
from support.commands import output, refusal, trained
from support.served import WORDS, subword_folder, text_folder, text_recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained("words", tmp_path_factory)


def answer(capsys, *arguments):
    return json.loads(output(capsys, "generate", *arguments, "--json"))


def test_samples_are_numbered_and_each_can_be_drawn_alone(run, capsys):
    found = answer(capsys, run, "--samples", 3, "--seed", 7, "--tokens", 9, "--prompt", "w1")
    assert [(one["number"], one["seed"]) for one in found["samples"]] == [(1, 7), (2, 8), (3, 9)]
    for one in found["samples"]:
        alone = answer(capsys, run, "--seed", one["seed"], "--tokens", 9, "--prompt", "w1")
        assert alone["words"] == alone["samples"][0]["words"] == one["words"]
        assert alone["text"] == one["text"]
    assert (found["words"], found["seed"]) == (found["samples"][0]["words"], 7)
    assert len({one["text"] for one in found["samples"]}) > 1


def test_a_fresh_seed_is_printed_and_repeats_the_text(run, capsys):
    texts = set()
    for _ in range(3):
        assert main(["generate", str(run), "--tokens", "15"]) == 0
        captured = capsys.readouterr()
        seed = re.fullmatch(r"seed (\d+)\n", captured.err)[1]
        assert output(capsys, "generate", run, "--tokens", 15, "--seed", seed) == captured.out
        texts.add(captured.out)
    assert len(texts) > 1
    assert main(["generate", str(run), "--tokens", "5", "--temperature", "0"]) == 0
    assert capsys.readouterr().err == "", "nothing is left to chance"


def test_what_takes_long_before_a_text_is_said_once(run, capsys):
    (run / "gradient-statistics.safetensors").unlink(missing_ok=True)
    command = ["generate", str(run), "--tokens", "5", "--seed", "1", "--prompt", "w1 w2", "--adapt"]
    printed = []
    for _ in range(2):
        assert main(command) == 0
        printed.append(capsys.readouterr().err.splitlines())
    assert printed == [
        [f"gradient statistics of the training data are computed once and kept in {run}"],
        [],
    ]


def test_a_file_holds_the_text(run, capsys, tmp_path):
    file, options = tmp_path / "a.txt", (run, "--tokens", 9, "--seed", 3, "--prompt", "w1 w2", "--samples", 2)
    printed = output(capsys, "generate", *options)
    assert printed.startswith("=== sample 1, seed 3 ===\nw1 w2 ")
    assert output(capsys, "generate", *options, "--out", "-") == printed
    assert output(capsys, "generate", *options, "--out", file) == f"{file}: 2 samples\n"
    assert file.read_text() == printed
    assert answer(capsys, *options, "--out", file)["out"] == str(file)
    assert file.read_text() == printed


def test_sentences_end_the_text(run, capsys):
    found = answer(capsys, run, "--sentences", 2, "--tokens", 400, "--seed", 1)
    assert found["words"].count("<eos>") == 2
    assert found["words"][-1] == "<eos>"
    assert main(["generate", str(run), "--sentences", "300", "--tokens", "4", "--seed", "1"]) == 0
    assert "no end of a sentence within 4 tokens; raise --tokens" in capsys.readouterr().err


def test_a_line_break_that_ends_a_prompt_is_read(tmp_path, capsys, monkeypatch):
    """What follows begins a line, for the model as on the screen; of standard input it only ends the text."""
    folder = text_folder(tmp_path / "run", text_recipe(eos="line", lowercase=False), [*WORDS, "<eos>"])
    loaded, cold = TextRun(folder), ("--temperature", 0, "--tokens", 1, "--prompt")
    texts = {"to be\n": ["to", "be", "<eos>"], "to\nbe": ["to", "<eos>", "be"], "to be": ["to", "be"]}
    for prompt, words in texts.items():
        log_probs, _ = read(loaded.model, [loaded.first, *loaded.vocabulary.encode(words)], loaded.begin())
        wanted = dict(zip(loaded.vocabulary.words, log_probs[0].exp().tolist(), strict=True))
        assert dict(loaded.next_words(prompt, len(wanted))) == pytest.approx(wanted, rel=1e-5), prompt
        best = max(set(wanted) - {"<unk>"}, key=wanted.get)
        assert answer(capsys, folder, *cold, prompt)["words"] == [best]
        assert loaded.words(prompt, count=1, sampling=Sampling(temperature=0)) == [best]
    for seed in range(9):
        written = output(capsys, "generate", folder, "--tokens", 1, "--seed", seed, "--prompt", "to be\n")
        assert re.fullmatch(r"to be\n(\S+|\n)\n", written), written
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"to be\r\n")))
    assert output(capsys, "generate", folder, *cold, "-") == output(capsys, "generate", folder, *cold, "to be")


def test_a_character_that_a_prompt_begins_is_written_once(tmp_path, capsysbinary, monkeypatch):
    names = [*map(chr, range(128)), *(f"<0x{byte:02X}>" for byte in range(128, 256))]
    folder = text_folder(tmp_path / "run", text_recipe(tokenisation="bytes", lowercase=False, eos="none"), names)
    command = ["generate", str(folder), "--prompt", "-", "--tokens", "5", "--seed", "1"]
    for prompt in (b"caf\xc3\xa9", b"\xe7\x8c", b"caf\xc3"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(prompt), encoding="utf-8"))
        assert main(command) == 0
        written = capsysbinary.readouterr().out
        assert written.startswith(prompt)
        assert len(written) == len(prompt) + 5 + 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xc3\n"), encoding="utf-8"))
    assert main([*command[:2], "--interactive", *command[4:]]) == 0
    assert capsysbinary.readouterr().out.strip() == written.removeprefix(prompt).strip()


def converse(run, monkeypatch, capsys, lines, *options):
    """The replies of a session, and what stands on standard error."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode("utf-8", "surrogateescape"))))
    assert main(["generate", str(run), "--interactive", "--tokens", "6", *options]) == 0
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def test_a_conversation_is_one_text(run, monkeypatch, capsys):
    """A line, the reply, another line: the state is kept, as if all were the prompt of one text."""
    first, second = converse(run, monkeypatch, capsys, "w1 w2\nw3\n", "--temperature", "0")[0]
    line = ("--temperature", 0, "--tokens", 6, "--prompt")
    expected = answer(capsys, run, *line, "w1 w2")["words"]
    assert first.split() == [word for word in expected if word != "<eos>"]
    if "<eos>" not in expected:
        whole = answer(capsys, run, *line, " ".join(["w1 w2", *expected, "w3"]))["words"]
        assert second.split() == [word for word in whole if word != "<eos>"]


def test_the_last_blank_of_a_turn_begins_the_next_word(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sentencepiece", reason="subwords need elman[subwords]")
    recipe = text_recipe(tokenisation="subwords", lowercase=False, eos="none", subwords={"size": 600})
    folder = subword_folder(tmp_path / "run", recipe)
    expected = output(capsys, "generate", folder, "--tokens", 6, "--temperature", 0, "--prompt", "to be ")
    assert converse(folder, monkeypatch, capsys, "to be \n", "--temperature", "0")[0] == [expected[5:-1]]


def test_unknown_words_of_a_turn_are_reported(run, monkeypatch, capsys):
    assert "1 of 2 words (50.0 %)" in converse(run, monkeypatch, capsys, "w1 never\n", "--seed", "1")[1]


@pytest.mark.slow
def test_commands_of_a_conversation(run, monkeypatch, capsys):
    lines = ":seed 5\nw1\n:new\n:seed 5\nw1\n:new\n:temperature 0\nw1\n:new\n::w1\nw1\n"
    replies, _ = converse(run, monkeypatch, capsys, lines, "--seed", "1", "--sentences", "1", "--tokens", "200")
    once, again, cold, *_ = replies
    assert once == again
    expected = answer(capsys, run, "--prompt", "w1", "--seed", 5, "--tokens", 200, "--sentences", 1)["words"]
    assert once.split() == expected[:-1]
    coldest = answer(capsys, run, "--prompt", "w1", "--temperature", 0, "--sentences", 1)["words"]
    assert cold.split() == [word for word in coldest if word != "<eos>"]


MISTAKES = {
    ":bogus": ":bogus is not a command",
    ":seed": ":seed is not a command, or its value is missing or wrong",
    ":seed -1": ":seed -1 is not",
    ":seed 18446744073709551616": "is not a command, or its value",
    ":temperature 0,8": "it must be a number",
    ":temperature nan": "0 or more",
    ":temperature -1": "0 or more",
    ":": ":temperature X",
    ":help": "Ctrl-D",
    "\udcff": "standard input: not UTF-8 at byte 0",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_does_not_end_a_conversation(run, monkeypatch, capsys, line):
    replies, shown = converse(run, monkeypatch, capsys, f"{line}\n:new\nw1\n", "--temperature", "0")
    assert MISTAKES[line] in shown
    assert replies == converse(run, monkeypatch, capsys, "w1", "--temperature", "0")[0]


def test_an_interrupt_ends_the_reply_alone(run, monkeypatch, capsys):
    real, drawn = sampling.generate, 0

    def interrupted(*arguments):
        nonlocal drawn
        for pair in real(*arguments):
            drawn += 1
            if drawn == 4:
                raise KeyboardInterrupt
            yield pair

    whole = answer(capsys, run, "--prompt", "w1", "--tokens", 9, "--temperature", 0)["words"]
    monkeypatch.setattr(sampling, "generate", interrupted)
    replies, shown = converse(run, monkeypatch, capsys, "w1\n\n", "--temperature", "0")
    assert "stopped; Ctrl-D ends" in shown
    assert " ".join(replies).split() == [word for word in whole if word != "<eos>"]


def test_a_conversation_is_saved_where_it_ended(run, monkeypatch, capsys, tmp_path):
    state = tmp_path / "state"
    converse(run, monkeypatch, capsys, "w1\n", "--temperature", "0", "--save-state", str(state))
    whole = answer(capsys, run, "--prompt", "w1", "--temperature", 0, "--tokens", 12)["words"]
    assert answer(capsys, run, "--state", state, "--temperature", 0, "--tokens", 6)["words"] == whole[6:]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--interactive", "--json"), ("--json", "--interactive")),
        (("--interactive", "--out", "a"), ("--out", "--interactive")),
        (("--interactive", "--samples", "2"), ("--samples", "--interactive")),
        (("--interactive", "--adapt"), ("--adapt", "--interactive")),
        (("--samples", "2", "--save-state", "s"), ("--save-state", "--samples")),
        (("--samples", "0"), ("--samples", "1 or more")),
        (("--sentences", "0"), ("--sentences", "1 or more")),
        (("--seed", "-1"), ("--seed", "0 or more")),
    ],
)
def test_options_that_do_not_fit_together(run, capsys, options, words):
    line = refusal(capsys, "generate", run, *options)
    assert all(word in line for word in words)
