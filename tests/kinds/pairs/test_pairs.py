"""Corpora of pairs: vocabularies, splits, batches, limits, and what is said of bad files."""

import dataclasses
import itertools

import msgspec
import numpy as np
import pytest
import torch

from elman import config
from elman.config.text import identity
from elman.data import by_length as batches
from elman.data.by_length import by_length, shuffled
from elman.errors import UserError
from elman.kinds.pairs.corpus import open_pairs, say_held_out
from elman.kinds.pairs.files import cut, read_pairs
from elman.kinds.pairs.record import PairOptions
from elman.kinds.pairs.symbols import PairSymbols
from elman.kinds.pairs.table import RawPair

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
SMALL = PairOptions(valid=5, test=5)


def lines(n=60, seed=0):
    """Words, and the same words backwards."""
    draw = np.random.default_rng(seed)
    sources = [" ".join(draw.choice(WORDS, size=draw.integers(1, 9))) for _ in range(n)]
    return [f"{source}\t{' '.join(reversed(source.split()))}" for source in sources]


def tsv(folder, content, name="pairs.tsv"):
    path = folder / name
    path.write_text("\n".join(content) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def corpus(tmp_path):
    return open_pairs(tsv(tmp_path, lines()), SMALL)


def test_a_batch_is_padded_shifted_and_masked(corpus):
    pairs = corpus.split("train")
    batch = corpus.gather(pairs, [0, 3, 7])
    eos = corpus.symbols.target.eos
    for column, index in enumerate([0, 3, 7]):
        source, target = pairs.source[index], pairs.target[index]
        assert batch.source.symbols[batch.source.mask[:, column], column].tolist() == source.tolist()
        assert batch.source.mask[:, column].tolist() == [True] * len(source) + [False] * (
            len(batch.source.symbols) - len(source)
        )
        assert batch.inputs[batch.mask[:, column], column].tolist() == [eos, *target.tolist()]
        assert batch.targets[batch.mask[:, column], column].tolist() == [*target.tolist(), eos]
        assert (batch.source.symbols[~batch.source.mask[:, column], column] == 0).all()
    assert batch.source.symbols.dtype == batch.inputs.dtype == batch.targets.dtype == torch.int64


def test_reversed_sources_end_with_the_first_symbol(tmp_path):
    path = tsv(tmp_path, lines())
    forward = open_pairs(path, SMALL)
    backward = open_pairs(path, msgspec.structs.replace(SMALL, reverse_source=True))
    ahead, back = (each.gather(each.split("train"), [0, 1]) for each in (forward, backward))
    for column in range(2):
        symbols = ahead.source.symbols[ahead.source.mask[:, column], column]
        assert back.source.symbols[back.source.mask[:, column], column].tolist() == symbols.flip(0).tolist()
    assert torch.equal(ahead.targets, back.targets)


@pytest.mark.parametrize("size", [{"batch_size": 8}, {"tokens_per_batch": 60}])
def test_buckets_hold_every_pair_once_and_depend_on_seed_and_epoch_alone(corpus, size):
    pairs = corpus.split("train")
    first = shuffled(pairs.lengths, 1, 2, **size)
    assert first == shuffled(pairs.lengths, 1, 2, **size)
    assert first != shuffled(pairs.lengths, 1, 3, **size)
    assert first != shuffled(pairs.lengths, 2, 2, **size)
    for found in (first, by_length(pairs.lengths, **size)):
        assert sorted(index for batch in found for index in batch) == list(range(len(pairs)))


def test_the_order_of_the_file_is_kept_but_for_neighbours(monkeypatch):
    """A curriculum: pools of batches come one after another, in every epoch with other batches first."""
    monkeypatch.setattr(batches, "POOL", 4)
    lengths = np.random.default_rng(0).integers(1, 9, size=(2, 100))
    first, second = (shuffled(lengths, 0, epoch, batch_size=5, in_order=True) for epoch in (0, 1))
    assert first != second
    for found in (first, second):
        for at in range(0, 20, 4):
            assert sorted(itertools.chain(*found[at : at + 4])) == list(range(5 * at, 5 * at + 20))


def test_a_pool_of_batches_by_tokens_has_as_many_pairs_as_fit_into_them(monkeypatch):
    monkeypatch.setattr(batches, "POOL", 4)
    found = shuffled(np.full((2, 100), 3), 0, 0, tokens_per_batch=30, in_order=True)
    assert [len(batch) for batch in found] == [5] * 20
    for at in range(0, 20, 4):
        assert sorted(itertools.chain(*found[at : at + 4])) == list(range(5 * at, 5 * at + 20))


def test_a_batch_by_tokens_keeps_within_them(corpus):
    pairs = corpus.split("train")
    for batch in shuffled(pairs.lengths, 0, 1, tokens_per_batch=60):
        gathered = corpus.gather(pairs, batch)
        assert len(batch) == 1 or gathered.source.symbols.numel() + gathered.targets.numel() <= 60


def test_batches_by_tokens_are_as_large_as_they_may_be_and_of_neighbours():
    """In the order of their targets in steps of four, then of their sources; the next pair would have been too much."""
    lengths = np.random.default_rng(0).integers(1, 30, size=(2, 300))
    found = by_length(lengths, tokens_per_batch=200)
    order = [*itertools.chain(*found)]
    assert order == sorted(range(300), key=lambda pair: (lengths[1, pair] // 4, lengths[0, pair], pair))
    for batch, after in itertools.pairwise(found):
        for pairs, fits in ((batch, True), ([*batch, after[0]], False)):
            assert (len(pairs) * lengths[:, pairs].max(1).sum() <= 200) is np.bool_(fits)


@pytest.mark.parametrize("rule", ["hash", "last"])
def test_held_out_sources_are_not_in_training(rule):
    pairs = [RawPair(f"source {index % 20}", f"target {index}") for index in range(100)]
    parts = cut(pairs, PairOptions(split=rule, valid=7, test=9), "file")
    sources = {name: {pair.source for pair in part} for name, part in parts.items()}
    assert (len(parts["valid"]), len(parts["test"])) == (7, 9)
    assert not sources["train"] & (sources["valid"] | sources["test"])
    if rule == "last":
        assert parts["test"] == pairs[-9:]


def test_the_hash_rule_does_not_mind_the_order_of_the_file():
    pairs = [RawPair(f"source {index}", f"target {index}") for index in range(50)]
    ways = [cut(order, PairOptions(valid=5, test=5), "file") for order in (pairs, pairs[::-1])]
    assert set(ways[0]["test"]) == set(ways[1]["test"])


def test_the_first_training_pairs_and_the_same_held_out_ones(tmp_path):
    path = tsv(tmp_path, lines())
    whole, part = (open_pairs(path, msgspec.structs.replace(SMALL, train_pairs=n)) for n in (None, 12))
    assert part.split("train").source_text == whole.split("train").source_text[:12]
    assert part.split("train").facts["lines"] == 12
    assert sum(part.symbols.source.counts) == part.split("train").facts["source_symbols"]
    for name in ("valid", "test"):
        assert part.split(name).source_text == whole.split(name).source_text
    assert whole.digest != part.digest
    assert "train_pairs" not in identity(whole.options)  # as digests were before there was this key


def test_parallel_files_by_ending_and_prefix(tmp_path):
    options = PairOptions(form="parallel", languages=("ja", "en"), lowercase=True)
    for split in ("train", "dev", "test"):
        tsv(tmp_path, ["犬 が 好き", "猫 が 好き"], f"little.{split}.ja")
        tsv(tmp_path, ["I like Dogs", "I like Cats"], f"little.{split}.en")
    by_prefix, by_folder = open_pairs(tmp_path / "little", options), open_pairs(tmp_path, options)
    assert by_prefix.digest == by_folder.digest
    assert by_prefix.split("valid").source_text == ["犬 が 好き", "猫 が 好き"]
    assert set(by_prefix.symbols.target.words) == {"i", "like", "dogs", "cats", "<eos>", "<unk>"}
    assert by_prefix.symbols.source.eos is None


def test_one_pair_of_parallel_files_is_cut(tmp_path):
    content = [line.split("\t") for line in lines()]
    tsv(tmp_path, [source for source, _ in content], "all.a")
    tsv(tmp_path, [target for _, target in content], "all.b")
    options = PairOptions(form="parallel", languages=("a", "b"), valid=5, test=5)
    one_file = open_pairs(tsv(tmp_path, lines()), SMALL)
    assert open_pairs(tmp_path / "all", options).split("test").source_text == one_file.split("test").source_text


def test_a_shared_vocabulary_is_one(tmp_path):
    corpus = open_pairs(tsv(tmp_path, lines()), msgspec.structs.replace(SMALL, shared_vocabulary=True))
    assert corpus.symbols.source is corpus.symbols.target


def test_long_training_pairs_are_left_out_and_long_held_out_sources_cut(tmp_path):
    corpus = open_pairs(tsv(tmp_path, lines()), msgspec.structs.replace(SMALL, max_source=4))
    whole = open_pairs(tsv(tmp_path, lines()), SMALL)
    train, test = corpus.split("train"), corpus.split("test")
    assert train.source.lengths.max() <= 4
    assert train.facts["too_long"] == len(whole.split("train")) - len(train) > 0
    assert len(test) == 5
    assert test.facts["cut"] == sum(whole.split("test").source.lengths > 4) > 0
    assert test.target.lengths.tolist() == whole.split("test").target.lengths.tolist()


def test_long_held_out_pairs_may_be_left_out_too(tmp_path):
    cut, omitted = (
        open_pairs(tsv(tmp_path, lines()), msgspec.structs.replace(SMALL, max_source=4, long_held_out=rule))
        for rule in ("cut", "omit")
    )
    for name in ("valid", "test"):
        long = cut.split(name).facts["cut"]
        assert omitted.split(name).facts["too_long"] == long > 0
        assert omitted.split(name).source_text == [one for one in cut.split(name).source_text if one.count(" ") < 4]
        assert omitted.split(name).facts["cut"] == cut.split(name).facts["too_long"] == 0
    assert omitted.split("train").source_text == cut.split("train").source_text


@pytest.mark.parametrize("side", ["max_source", "max_target"])
def test_a_training_pair_as_long_as_the_limit_is_kept(side, tmp_path):
    texts = ["a b c", "a b c d", "a b c d e"]
    pairs = [f"{text}\ta b" if side == "max_source" else f"a b\t{text}" for text in texts]
    held_out = [f"c {number}\td" for number in range(10)]
    options = msgspec.structs.replace(SMALL, split="last", **{side: 4})
    train = open_pairs(tsv(tmp_path, pairs + held_out), options).split("train")
    lengths = (train.source if side == "max_source" else train.target).lengths
    assert lengths.tolist() == [3, 4]
    assert train.facts["too_long"] == 1


def test_symbols_are_saved_with_the_run(corpus, tmp_path):
    corpus.symbols.save(tmp_path)
    loaded = PairSymbols.load(tmp_path, corpus.options)
    assert loaded == corpus.symbols
    assert loaded.digest == corpus.symbols.digest
    assert loaded.tokenisers.shown(loaded.target.decode(loaded.target.encode(["one", "two"]))) == "one two"


def test_an_end_symbol_in_the_text_is_no_end(tmp_path):
    corpus = open_pairs(tsv(tmp_path, [*lines(), "one <eos> two\tone <eos> two"]), PairOptions(valid=1, test=1))
    vocabulary = corpus.symbols.target
    assert not any(vocabulary.eos in target for target in corpus.split("train").target)


def test_a_corpus_is_described(corpus):
    told = corpus.describe()
    train = corpus.split("train")
    assert told["splits"]["train"]["tokens"] == len(train.target.symbols) + len(train)
    assert told["digest"] == corpus.digest
    msgspec.json.encode(told)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({5: "only a source"}, r"pairs.tsv:6: no tab; every line is"),
        ({5: "a\tb\tc"}, r"pairs.tsv:6: 2 tabs; every line is"),
        ({5: ""}, r"pairs.tsv:6: the source is empty; .*skip_empty"),
        ({5: "a\t "}, r"pairs.tsv:6: the target is empty"),
    ],
)
def test_a_bad_line_is_named(tmp_path, change, says):
    content = [change.get(number, line) for number, line in enumerate(lines())]
    with pytest.raises(UserError, match=says):
        open_pairs(tsv(tmp_path, content), SMALL)


def test_empty_lines_may_be_left_out(tmp_path):
    corpus = open_pairs(tsv(tmp_path, [*lines(), "", "a\t"]), msgspec.structs.replace(SMALL, skip_empty=True))
    assert corpus.split("train").facts["empty"] == 2


def test_what_is_left_out_or_cut_is_reported(tmp_path, capsys):
    """Of eleven pairs one is empty, two have a source that is held out too, and three are too long."""
    options = PairOptions(split="last", valid=1, test=2, skip_empty=True, max_source=2, max_target=2)
    content = ["\tc", "a\tc", "a\td", "a b c\td", "b\ta b c", "c c c\td", "c\te", "d\tf", "b c\td", "x y z\td", "a\td"]
    path = tsv(tmp_path, content)
    corpus = open_pairs(path, options)
    limits = "data.max_source = 2 or data.max_target = 2"
    assert capsys.readouterr().err == (
        f"elman: {path}: 6 training pairs left out: 1 with an empty side, 2 whose source is held out too, 3 of more"
        f" symbols than {limits}\n"
    )
    say_held_out(corpus, corpus.split("test"))
    assert capsys.readouterr().err == (
        f"elman: {path}: 1 of 2 sources of the test split cut after data.max_source = 2 symbols\n"
    )
    open_pairs(path, options, symbols=corpus.symbols)
    assert capsys.readouterr().err == ""
    omitting = open_pairs(path, msgspec.structs.replace(options, long_held_out="omit"), symbols=corpus.symbols)
    say_held_out(omitting, omitting.split("test"))
    assert capsys.readouterr().err == (
        f"elman: {path}: 1 pairs of the test split left out: of more symbols than {limits}\n"
    )


def test_other_mistakes_are_one_line(tmp_path):
    def fails(says, source, options=SMALL):
        with pytest.raises(UserError, match=says) as caught:
            open_pairs(source, options)
        assert "\n" not in str(caught.value)

    parallel = PairOptions(form="parallel", languages=("a", "b"))
    tsv(tmp_path, ["x"] * 3, "uneven.a")
    tsv(tmp_path, ["x"] * 4, "uneven.b")
    fails(r"uneven.a has 3 lines and .*uneven.b has 4", tmp_path / "uneven", parallel)
    fails("no train split; looked for train.a", tmp_path, parallel)
    fails("no train split", tmp_path / "nowhere")
    fails("too few to hold out data.valid = 2,000", tsv(tmp_path, lines()), PairOptions())
    fails(
        "all 50 training pairs are longer than data.max_source = 1",
        tsv(tmp_path, [f"a {number}\tc" for number in range(60)]),
        long_only(),
    )
    fails("every training source is also held out", tsv(tmp_path, ["a b\tc"] * 60))
    (tmp_path / "latin.tsv").write_bytes(b"a\tb\ncaf\xe9\tcoffee\n")
    fails(r"latin.tsv: not UTF-8 at byte 7 \(0xe9\); it looks like ", tmp_path / "latin.tsv")
    fails("there is no pair", tsv(tmp_path, [""]), PairOptions(skip_empty=True))
    fails("there is no pair", tsv(tmp_path, []), PairOptions())


def long_only():
    return PairOptions(split="last", valid=5, test=5, max_source=1, skip_empty=True)


def test_sources_to_transduce_are_checked(corpus):
    symbols = with_options(corpus.symbols, max_source=3)
    assert symbols.encode_source("one two", "in:1").tolist() == corpus.symbols.source.encode(["one", "two"]).tolist()
    for text, says in {
        " ": "in:1: an empty source",
        "one two three four": "in:1: a source of 4 symbols, the limit is 3",
        "neun zehn": "in:1: none of the 2 symbols is in the source vocabulary",
    }.items():
        with pytest.raises(UserError, match=says):
            symbols.encode_source(text, "in:1")


def with_options(symbols, **options):
    return dataclasses.replace(symbols, options=msgspec.structs.replace(symbols.options, **options))


def test_recipes_name_what_is_wrong():
    stack = {"kind": "stack", "sizes": [4]}
    encoder = {"kind": "lookup", "size": 4}
    model = {"encoder": encoder, "core": {"kind": "attentive", "stack": stack}, "source": {"stack": stack}}
    base = {"title": "t", "model": model}
    base["training"] = {"epochs": 1, "optimiser": {"kind": "adam"}}
    recipe = config.parse_recipe(
        {**base, "data": {"kind": "pairs", "form": "parallel", "languages": ["ja", "en"]}}, "r"
    )
    assert recipe.data.languages == ("ja", "en")
    with pytest.raises(UserError, match="needs the endings of the two files"):
        config.parse_recipe({**base, "data": {"kind": "pairs", "form": "parallel"}}, "r")


def test_quoted_cells_of_several_lines(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text('one\teins\n"two\nand three"\tzwei und drei\n"""four"""\t"vier\nund"\n')
    options = PairOptions(form="tsv")
    pairs, _ = read_pairs((path,), options)
    assert pairs == [("one", "eins"), ("two and three", "zwei und drei"), ('"four"', "vier und")]
    path.write_text('"one"\t"eins"\n"two"\tzwei\n')
    assert read_pairs((path,), options)[0] == [('"one"', '"eins"'), ('"two"', "zwei")]
    path.write_text('"one"\teins\n"two\n')
    with pytest.raises(UserError, match=":2: no tab"):
        read_pairs((path,), options)
