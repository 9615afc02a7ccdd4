"""Random programs: Python agrees with their results, their numbers are as the paper says, splits share none."""

import contextlib
import io
import json
import random
import re
from collections import Counter

import pytest

from elman.cli import main
from elman.data.programs import (
    BREAK,
    MIXED,
    OPERATIONS,
    Difficulty,
    Wish,
    difficulties,
    draw_pair,
    draw_program,
    draw_splits,
    split_of,
    write_pairs,
)
from elman.errors import UserError
from elman.kinds.pairs.corpus import open_pairs
from elman.kinds.pairs.record import PairOptions

SIX = Difficulty(2, 3)


def printed(source):
    """What Python prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(source.replace(BREAK, "\n"), {})
    return out.getvalue().strip()


@pytest.mark.parametrize("nesting", [1, 2, 4, 10])
def test_python_agrees(nesting):
    draw = random.Random(nesting)
    for _ in range(400):
        source, target = draw_pair("execute", draw, Difficulty(draw.randint(1, 6), nesting))
        assert printed(source) == target


@pytest.mark.parametrize("task", ["add", "copy"])
def test_sums_and_copies(task):
    draw = random.Random(0)
    for _ in range(50):
        source, target = draw_pair(task, draw, Difficulty(4, 1))
        assert target == (printed(source) if task == "add" else source)
        assert all(len(number) == 4 for number in re.findall("[0-9]+", source))


def shape(program):
    """A program of one operation with 0 for numbers, a for its variable, + for both signs and < for both orders."""
    return re.sub(r"[0-9]+", "0", re.sub(r"\b[a-j]\b", "a", program)).replace("-", "+").replace(">", "<")


def test_every_operation_and_number_is_drawn_within_its_range():
    """Uniform operations; numbers up to 10^length, factors and loops up to 4 length, both ends included."""
    draw = random.Random(1)
    programs = [draw_program(draw, 1, 1)[0] for _ in range(4000)]
    counts = Counter(map(shape, programs))
    assert set(counts) == {
        "print((0+0))",
        "print((0*0))",
        "a=0;print((a+0))",
        "a=0;for x in range(0):a+=0;print(a)",
        "print((0 if 0<0 else 0))",
    }
    assert all(abs(count - 4000 / len(OPERATIONS)) < 120 for count in counts.values())
    assert {times for one in programs for times in re.findall(r"range\(([0-9]+)\)", one)} == {"1", "2", "3", "4"}
    assert {int(number) for one in programs for number in re.findall("[0-9]+", one)} == set(range(1, 11))


def test_every_variable_is_used_after_it_is_set():
    for seed in range(200):
        program, _ = draw_program(random.Random(seed), 2, 5)
        for name in re.findall(r"(?:^|;)([a-j])=", program):
            assert re.search(rf"\b{name}\b", program.split(f"{name}=", 1)[1])


def test_curricula():
    draw = random.Random(0)
    assert set(difficulties("baseline", SIX, 20, draw)) == {SIX}
    naive = list(difficulties("naive", SIX, 12, draw))
    assert naive[::2] == naive[1::2] == [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]
    mixed = list(difficulties("mix", SIX, 6000, draw))
    assert all(abs(mixed.count(one) - 1000) < 120 for one in set(naive))
    combined = list(difficulties("combined", SIX, 6000, draw))
    own = sum(one == naive[place * 12 // 6000] for place, one in enumerate(combined))
    assert own / 6000 == pytest.approx(1 - MIXED * 5 / 6, abs=0.02)


def test_splits_share_no_program_and_a_seed_decides_them(tmp_path):
    wish = Wish(length=2, nesting=1, strategy="mix", train=300, valid=40, test=50)
    found = draw_splits(wish)
    sources = {split: {source for source, _ in pairs} for split, pairs in found.items()}
    assert [len(pairs) for pairs in found.values()] == [300, 40, 50]
    assert (len(sources["valid"]), len(sources["test"])) == (40, 50)
    assert all(split_of(source) == split for split, those in sources.items() for source in those)
    assert found == draw_splits(wish) != draw_splits(wish._replace(seed=1))
    assert found["test"] == draw_splits(wish._replace(strategy="naive"))["test"]
    twice = write_pairs(wish._replace(doubled=True), tmp_path)
    assert twice["test"] == [(f"{source};{source}", target) for source, target in found["test"]]


def test_pairs_are_read_as_characters(tmp_path, capsys):
    words = ["data", "programs", str(tmp_path / "p"), "--length", "1", "--train", "30", "--valid", "5", "--test", "6"]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["nesting"], [row["pairs"] for row in told["splits"]]) == (2, [30, 5, 6])
    corpus = open_pairs(tmp_path / "p", PairOptions(tokenisation="characters", measures="sequences"))
    pairs = corpus.split("test")
    assert [printed(source) for source in pairs.source_text] == pairs.target_text
    assert corpus.symbols.tokenisers.source_words(pairs.source_text[0]) == list(pairs.source_text[0])
    assert main(words) == 2
    assert "holds pairs already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--task", "copy", "--length", "1", "--valid", "9"), "none was a new one for the valid split"),
        (("--task", "add", "--nesting", "2"), "only programs have operations; set it to 1"),
        (("--nesting", "11"), "a program has 10 variables"),
        (("--length", "101"), "numbers have 100 digits at most"),
    ],
)
def test_mistakes_are_one_line(tmp_path, capsys, options, says):
    assert main(["data", "programs", str(tmp_path / "p"), "--train", "5", *options]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "p").exists()


def test_a_wish_that_cannot_be_met_is_told():
    with pytest.raises(UserError, match="of 1,000 sources of length 1 and nesting 1 none was a new one"):
        draw_splits(Wish(task="copy", length=1, nesting=1, train=1, valid=9, test=9))


def test_the_longest_numbers_and_the_most_variables_are_drawn():
    """Borders of what is refused: 100 digits, and as many operations as there are variables."""
    few = Wish(length=100, nesting=10, train=1, valid=1, test=1)
    assert [len(pairs) for pairs in draw_splits(few).values()] == [1, 1, 1]
    ((source, _),) = draw_splits(few._replace(task="copy", nesting=1))["test"]
    assert len(source) == 100
