"""Answers about a text: the figures of the library, whatever was kept, and its marks as the page shows them."""

import math

import numpy as np
import pytest
import torch

import elman
from elman.config.inference import RULES, Rule, Sampling
from elman.data.minimal_pairs import Pair
from elman.data.text.utf8 import piece_bytes
from elman.decoding.sampling import read
from elman.errors import UserError
from elman.evaluation.adaptive_stream import AdaptiveStream
from elman.serve import answers, questions
from elman.serve.limits import Limits, Refused
from elman.serve.tabs import Tabs
from elman.serve.text_reader import read_text
from elman.serve.text_views import compare
from elman.tasks.text.suites import judge
from support.served import answer, drawn, service, subword_folder, text_folder, text_recipe

TEXT = "To be, or not to be? The king"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return text_folder(tmp_path_factory.mktemp("runs") / "doc", text_recipe("doc"))


@pytest.fixture(scope="module")
def run(folder):
    return elman.load(folder)


@pytest.fixture(scope="module")
def served(folder):
    return service(folder)


@pytest.fixture
def tab():
    return Tabs(Limits()).use("a-tab-of-mine")


def ask(served, tab, name, question):
    return answer(served.ask(name, question, tab))


def bits(run, text):
    parts = [log_probs for _, log_probs in run.score(text, document=True)]
    return -np.concatenate(parts) / math.log(2)


def test_a_text_has_the_surprisal_of_the_library(run, served, tab):
    found = ask(served, tab, "score", questions.Score(text=TEXT))
    expected = bits(run, TEXT)[:-1]  # the end of its line has not been written
    np.testing.assert_allclose([mark.bits for mark in found.marks], expected, atol=1e-5)
    assert [mark.text for mark in found.marks] == ["To", "be", ",", "or", "not", "to", "be", "?", "The", "king"]
    assert [mark.begins for mark in found.marks] == [True, True, False, True, True, True, True, False, True, True]
    assert (found.tokens, found.computed) == (10, 10)
    assert found.bits == pytest.approx(expected.sum(), abs=1e-4)
    assert found.perplexity == pytest.approx(2 ** (expected.mean()), rel=1e-5)


def test_the_end_of_a_line_counts_once_it_is_written(run, served, tab):
    found = ask(served, tab, "score", questions.Score(text=f"{TEXT}\nnot"))
    assert [mark.ends for mark in found.marks].count(True) == 1
    np.testing.assert_allclose([mark.bits for mark in found.marks], bits(run, f"{TEXT}\nnot")[:-1], atol=1e-5)
    assert ask(served, tab, "score", questions.Score(text=f"{TEXT}\n")).marks[-1].ends
    assert not ask(served, tab, "score", questions.Score(text="")).marks


def test_what_is_read_predicted_and_told_apart_is_as_long(run):
    """Of a line that is not ended its end is left out."""
    for text, length in (("", 0), ("to be", 2), ("to be\n", 3), ("to be\nor", 4), ("to be\nor\n", 5)):
        found = read_text(run, text)
        assert [len(part) for part in (*found.symbols[1:], found.tokens)] == [length] * 4


def test_a_key_computes_a_word(served, tab):
    for text, computed in ((TEXT, 10), (f"{TEXT} o", 1), (f"{TEXT} of", 1), (f"{TEXT} of a", 1), (TEXT, 0)):
        assert ask(served, tab, "score", questions.Score(text=text)).computed == computed


def test_unknown_words_are_marked_and_noted(served, tab):
    found = ask(served, tab, "score", questions.Score(text="the wombat"))
    assert [mark.unknown for mark in found.marks] == [False, True]
    assert any("wombat" in note for note in found.notes)


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.5}, {"temperature": 0}])
def test_what_may_follow_and_what_is_drawn(run, served, tab, settings):
    found = ask(served, tab, "next", questions.Next(text=TEXT, count=200, **settings))
    expected = dict(run.next_words(TEXT, k=len(run.vocabulary)))
    assert {word.token: word.probability for word in found.words} == pytest.approx(expected, abs=1e-6)
    probs = torch.tensor([word.probability for word in found.words], dtype=torch.float64)
    shares = torch.tensor([word.drawn for word in found.words], dtype=torch.float64)
    assert shares.sum() == pytest.approx(1, abs=1e-6)
    unk = [word.token for word in found.words].index("<unk>")
    assert shares[unk] == 0
    probs[unk] = 0
    temperature = settings.get("temperature", 1)
    if temperature == 0:
        assert shares.argmax() == probs.argmax()
        assert shares.max() == 1
        return
    powered = probs ** (1 / temperature)
    kept = shares > 0
    np.testing.assert_allclose(shares[kept], powered[kept] / powered[kept].sum(), atol=1e-6)
    assert int(kept.sum()) == (settings.get("top_k") or int(kept.sum()))
    if "top_p" in settings:
        normal = probs / probs.sum()
        ordered = normal[kept].sort(descending=True).values
        assert ordered.sum() >= 0.5 > ordered[:-1].sum()


def test_what_is_left_is_the_probability_of_all_others(served, tab):
    """Of the model, whatever may be drawn."""
    few = ask(served, tab, "next", questions.Next(text=TEXT, count=3, temperature=0.5, top_k=2))
    assert len(few.words) == 3
    assert few.left == pytest.approx(1 - sum(word.probability for word in few.words))
    assert few.left > 0.05
    every = ask(served, tab, "next", questions.Next(text=TEXT, count=200))
    assert every.left == pytest.approx(0, abs=1e-6)


def test_what_was_expected_at_a_place(run, served, tab):
    found = ask(served, tab, "next", questions.Next(text=TEXT, position=4))
    assert found.actual.token == "not"
    scored = ask(served, tab, "score", questions.Score(text=TEXT)).marks[4]
    assert -math.log2(found.actual.probability) == pytest.approx(scored.bits, abs=1e-4)
    assert found.entropy == pytest.approx(scored.entropy, abs=1e-4)
    with pytest.raises(UserError, match="position is 11, and the text has 10 tokens"):
        ask(served, tab, "next", questions.Next(text=TEXT, position=11))


def tokens_of(events):
    return [event.id for event in events if isinstance(event, answers.Drawn)]


def test_samples_are_those_of_the_library_and_branch_anywhere(run, served, tab):
    events = drawn(served.ask("generate", questions.Generate(text=TEXT, drawn=12, seed=5), tab))
    ids = tokens_of(events)
    words = run.words(TEXT, count=12, seed=5, sampling=Sampling(forbidden=run.unspeakable))
    assert run.vocabulary.decode(ids) == words
    assert [type(event).__name__ for event in events] == ["Begun", *["Drawn"] * 12, "Ended"]
    assert events[0].seed == 5
    cold = {"text": TEXT, "drawn": 8, "seed": 0, "temperature": 0.0}
    straight = tokens_of(drawn(served.ask("generate", questions.Generate(**cold), tab)))
    branched = drawn(served.ask("generate", questions.Generate(**cold, after=straight[:3]), tab))
    assert tokens_of(branched)[:5] == straight[3:]
    text = TEXT + "".join(event.text for event in events if isinstance(event, answers.Drawn))
    if "\n" not in text:
        again = ask(served, tab, "score", questions.Score(text=text))
        expected = [event.bits for event in events if isinstance(event, answers.Drawn)]
        np.testing.assert_allclose([mark.bits for mark in again.marks[-12:]], expected, atol=1e-4)


@pytest.mark.parametrize("position", [None, 10])
def test_a_blank_at_the_end_of_a_text_is_not_repeated_before_a_word(served, tab, position):
    def text_of(text, after=()):
        question = questions.Generate(text=text, position=position, drawn=5, seed=3, temperature=0.1, after=[*after])
        return "".join(one.text for one in drawn(served.ask("generate", question, tab)) if hasattr(one, "text"))

    assert text_of(TEXT).startswith(" ")
    assert text_of(f"{TEXT} ") == text_of(TEXT)[1:]
    again = drawn_ids(served, tab, questions.Generate(text=TEXT, drawn=1, seed=3, temperature=0.1))
    assert text_of(f"{TEXT} ", again) == text_of(TEXT, again)


def test_tokens_that_do_not_exist_cannot_be_continued(served, tab):
    with pytest.raises(UserError, match="after has 99, and the vocabulary has"):
        drawn(served.ask("generate", questions.Generate(text=TEXT, after=[99]), tab))


def test_components_mix_to_the_distribution(run, served, tab):
    found = ask(served, tab, "components", questions.Components(text=TEXT, count=50))
    assert [one.name for one in found.components] == ["1.1", "2.1", "2.2"]
    assert sum(one.weight for one in found.components) == pytest.approx(1, abs=1e-6)
    expected = dict(run.next_words(TEXT, k=len(run.vocabulary)))
    for parts in (found.components, found.layers):
        mixed = dict.fromkeys(expected, 0.0)
        for part in parts:
            for word in part.words:
                mixed[word.token] += part.weight * word.probability
        assert mixed == pytest.approx(expected, abs=1e-6)
    assert 1 <= found.in_use <= 3
    weights = np.array([one.weight for one in found.components])
    assert found.in_use == pytest.approx(np.exp(-(weights * np.log(weights)).sum()))


def test_states_are_projected_onto_the_same_components(run, served, tab):
    found = ask(served, tab, "states", questions.States(text=TEXT, layer=1))
    assert (len(found.labels), len(found.points)) == (11, 11)
    assert found.labels[1] == "To"
    with torch.inference_mode():
        ids = torch.tensor([[run.first], *[[one] for one in run.encode(TEXT)]])
        states = run.model.trace(ids, run.begin())[0].raw[1][:, 0].numpy()
    np.testing.assert_allclose(found.norms, np.linalg.norm(states, axis=1), atol=1e-4)
    longer = ask(served, tab, "states", questions.States(text=f"{TEXT} of", layer=1))
    assert longer.points[:11] == found.points
    distance = np.linalg.norm(states[3] - states[4])
    assert np.linalg.norm(np.subtract(found.points[3], found.points[4])) <= distance + 1e-4
    assert len(found.radii) == 2
    with pytest.raises(UserError, match="layer is 3; this model has the layers 0"):
        ask(served, tab, "states", questions.States(text=TEXT, layer=3))


def test_minimal_pairs_and_neighbours(run, served, tab):
    pair = questions.Sentences(good="the king", bad="a king of")
    found = ask(
        served, tab, "pairs", questions.Pairs(pairs=[pair, questions.Sentences(good="the king", bad="the king")])
    )
    log_probs = judge(run, [Pair("the king", "a king of", "x")]).log_probs[0]
    assert [found.pairs[0].good, found.pairs[0].bad] == pytest.approx(-log_probs / math.log(2))
    assert found.pairs[0].correct == (log_probs[0] > log_probs[1])
    assert found.pairs[1].correct is None
    twice = questions.Sentences(good="the zzz zzz king", bad="the king")
    assert ask(served, tab, "pairs", questions.Pairs(pairs=[twice])).pairs[0].unknown == ["zzz"]
    with pytest.raises(UserError, match="pairs: item 2: a line break in a sentence"):
        ask(served, tab, "pairs", questions.Pairs(pairs=[pair, questions.Sentences(good="the king\n", bad="a king")]))
    near = ask(served, tab, "neighbours", questions.Neighbours(word="King", count=3))
    assert len(near.neighbours) == 3
    assert near.word == "king"
    assert near.neighbours[0].cosine >= near.neighbours[1].cosine
    assert ask(served, tab, "neighbours", questions.Neighbours(word="wombat")) == answers.Nearest(
        word="wombat", known=False, neighbours=[]
    )


def test_a_tab_that_adapts_learns_what_was_read_and_not_the_last_word(run, served, tab):
    ask(served, tab, "adapt", questions.Adapt(tab="a-tab-of-mine", on=True))
    found = ask(served, tab, "score", questions.Score(text=TEXT))
    assert found.adapted
    stream = AdaptiveStream(run.model, Rule(kind="sgd", lr=0.1, decay=0.0), None, run.first)
    expected = -stream.score(run.encode(TEXT)) / math.log(2)
    np.testing.assert_allclose([mark.bits for mark in found.marks], expected, atol=1e-4)
    assert not np.allclose(expected, bits(run, TEXT)[:-1], atol=1e-3)
    longer = ask(served, tab, "score", questions.Score(text=f"{TEXT} of"))
    assert longer.computed == 2
    np.testing.assert_allclose([mark.bits for mark in longer.marks[:9]], expected[:9], atol=1e-4)
    changed = ask(served, tab, "score", questions.Score(text="not to be"))
    stream = AdaptiveStream(run.model, RULES["sgd"], None, run.first)
    np.testing.assert_allclose(
        [mark.bits for mark in changed.marks], -stream.score(run.encode("not to be")) / math.log(2), atol=1e-4
    )
    ask(served, tab, "adapt", questions.Adapt(tab="a-tab-of-mine", on=False))
    again = ask(served, tab, "score", questions.Score(text=TEXT))
    np.testing.assert_allclose([mark.bits for mark in again.marks], bits(run, TEXT)[:-1], atol=1e-5)


def test_two_questions_of_a_tab_that_adapts_do_not_teach_it_twice(run, served, tab):
    ask(served, tab, "adapt", questions.Adapt(tab="a-tab-of-mine", on=True))
    text = " ".join([TEXT] * 3)
    works = [
        served.ask(name, kind(text=text), tab) for name, kind in (("score", questions.Score), ("next", questions.Next))
    ]
    found = {}
    while len(found) < 2:
        for number in {0, 1} - found.keys():
            try:
                next(works[number])
            except StopIteration as stop:
                found[number] = stop.value
    stream = AdaptiveStream(run.model, RULES["sgd"], None, run.first)
    expected = -stream.score(run.encode(text)) / math.log(2)
    np.testing.assert_allclose([mark.bits for mark in found[0].marks], expected, atol=1e-4)


def test_other_questions_are_answered_by_the_adapted_model(run, served, tab):
    ask(served, tab, "adapt", questions.Adapt(tab="a-tab-of-mine", on=True))
    found = ask(served, tab, "next", questions.Next(text=TEXT, count=200))
    stream = AdaptiveStream(run.model, RULES["sgd"], None, run.first)
    ids = run.encode(TEXT)
    stream.score(ids[:-1])
    log_probs, _ = read(stream.model, [run.first, *ids], stream.model.begin(1))
    expected = dict(zip(run.vocabulary.words, log_probs[0].exp().tolist(), strict=True))
    assert {word.token: word.probability for word in found.words} == pytest.approx(expected, abs=1e-5)


def test_copies_of_a_model_are_bounded(folder):
    served, tabs = service(folder, adapted=1), Tabs(Limits())
    answer(served.ask("adapt", questions.Adapt(tab="tab-number-1", on=True), tabs.use("tab-number-1")))
    with pytest.raises(Refused, match="1 tabs adapt already"):
        answer(served.ask("adapt", questions.Adapt(tab="tab-number-2", on=True), tabs.use("tab-number-2")))


def test_two_runs_by_word(served, tab, tmp_path):
    words = list("tobernhkigafqus ,.!?")
    other = service(text_folder(tmp_path / "letters", text_recipe(tokenisation="characters"), words))
    other.name = "other"
    found = answer(compare(served, other, questions.Compare(text="to be not"), tab))
    assert found.same_words
    assert [word.word for word in found.words] == ["to", "be", "not"]
    letters = ask(other, tab, "score", questions.Score(text="to be not"))
    assert found.second == pytest.approx(letters.bits)
    assert sum(word.second for word in found.words) == pytest.approx(letters.bits)
    assert found.words[0].difference == pytest.approx(found.words[0].second - found.words[0].first)
    marks = answer(compare(served, other, questions.Compare(text="To be,\nnot"), tab))
    assert [word.word for word in marks.words] == ["To", "be,", "not"]


def test_words_that_one_run_lacks_are_not_compared(served, tab, monkeypatch):
    readings = iter([[("to", 1.0, False), ("zeugma", 2.0, True)], [("to", 2.5, False), ("zeugma", 9.0, False)]])
    monkeypatch.setattr("elman.serve.text_views.words_of", lambda *_: next(readings))
    found = answer(compare(served, served, questions.Compare(text="to zeugma"), tab))
    assert found.same_words
    assert found.unknown == [1, 0]
    assert [(word.difference, word.unknown) for word in found.words] == [(1.5, False), (None, True)]


def test_words_that_are_read_otherwise_are_not_compared(served, tab, monkeypatch):
    readings = iter([[("to", 1.0, False), ("be", 2.0, False)], [("tobe", 2.5, False)]])
    monkeypatch.setattr("elman.serve.text_views.words_of", lambda *_: next(readings))
    found = answer(compare(served, served, questions.Compare(text="to be"), tab))
    assert not found.same_words
    assert [(word.first, word.second, word.difference) for word in found.words] == [
        (1.0, None, None),
        (2.0, None, None),
    ]


def test_letters_of_japanese(tmp_path):
    letters = list("吾輩は猫である。 \n名前まだ無い")
    served = service(text_folder(tmp_path / "cat", text_recipe(tokenisation="characters", eos="line"), letters[:9]))
    found = answer(served.ask("score", questions.Score(text="吾輩は猫である。\n猫"), Tabs(Limits()).use(None)))
    assert [mark.text for mark in found.marks] == [*"吾輩は猫である。", "", "猫"]
    assert [mark.ends for mark in found.marks].count(True) == 1
    assert "letters" in served.facts().panels
    assert served.facts().spelt


def test_bytes_are_shown_as_the_characters_that_they_make_up(tmp_path):
    from elman.data.text.utf8 import spell

    letters = sorted(set(spell("猫である, cat")))
    served = service(text_folder(tmp_path / "bytes", text_recipe(tokenisation="bytes", lowercase=False), letters))
    found = answer(served.ask("score", questions.Score(text="猫 cat"), Tabs(Limits()).use(None)))
    assert [mark.text for mark in found.marks] == ["猫", " ", "c", "a", "t"]
    assert [mark.tokens for mark in found.marks] == [3, 1, 1, 1, 1]
    assert [mark.at for mark in found.marks] == [0, 3, 4, 5, 6]
    assert sum(mark.bits for mark in found.marks) == pytest.approx(found.bits)
    assert found.perplexity == pytest.approx(2 ** (found.bits / 7)), "by byte, as it is read"


def test_a_model_that_reads_spelling_distinguishes_unknown_words(tmp_path):
    encoder = {"kind": "characters", "size": 4, "widths": [1, 2], "filters": [3, 3]}
    served = service(text_folder(tmp_path / "spelling", text_recipe(encoder=encoder)))
    tab, run = Tabs(Limits()).use("a-tab-of-mine"), served.run
    for text in ("the cats be not", "the dogs be not", "the dogs be to cats not"):
        found = answer(served.ask("score", questions.Score(text=text), tab))
        np.testing.assert_allclose([mark.bits for mark in found.marks], bits(run, text)[:-1], atol=1e-5)
    near = answer(served.ask("neighbours", questions.Neighbours(word="kings"), tab))
    assert (near.known, len(near.neighbours)) == (False, 12)


def test_questions_that_are_too_long_are_refused(folder):
    served, tab = service(folder, text=20, drawn=5, steps=3), Tabs(Limits()).use(None)
    for name, question in (
        ("score", questions.Score(text="a" * 21)),
        ("generate", questions.Generate(drawn=6)),
        ("generate", questions.Generate(drawn=5, after=[0] * 4)),
        ("pairs", questions.Pairs(pairs=[questions.Sentences(good="a" * 11, bad="a" * 10)])),
    ):
        with pytest.raises(Refused) as refused:
            served.ask(name, question, tab)
        assert refused.value.status == 413


def drawn_ids(served, tab, question):
    return [one.id for one in drawn(served.ask("generate", question, tab)) if isinstance(one, answers.Drawn)]


def test_the_last_blank_in_subwords_begins_the_next_word(tmp_path, tab):
    pytest.importorskip("sentencepiece", reason="subwords need elman[subwords]")
    recipe = text_recipe(tokenisation="subwords", lowercase=False, eos="none", subwords={"size": 600})
    folder = subword_folder(tmp_path / "doc", recipe)
    run, served = elman.load(folder), service(folder)
    size = len(run.vocabulary)
    spaces = [one for one, word in enumerate(run.vocabulary.words) if piece_bytes(word)[:1] == b" "]
    assert len(spaces) < len(run.spaces), "a tabulator is white space, and no blank"
    with torch.inference_mode():
        log_probs, _ = read(run.model, [run.first, *run.read("to be or")[1]], run.begin())
    probs = log_probs[0].double().exp()
    wanted = torch.zeros(size, dtype=torch.float64)
    wanted[spaces] = probs[spaces] / probs[spaces].sum()
    found = ask(served, tab, "next", questions.Next(text="to be or ", count=size))
    assert {one.id: one.probability for one in found.words} == pytest.approx(dict(enumerate(wanted.tolist())))
    by_word = dict(zip(run.vocabulary.words, wanted.tolist(), strict=True))
    assert dict(run.next_words("to be or ", size)) == pytest.approx(by_word)
    question = questions.Generate(text="to be or ", seed=3, drawn=6)
    events = [one for one in drawn(served.ask("generate", question, tab)) if isinstance(one, answers.Drawn)]
    assert events[0].id in spaces
    assert f" {events[0].text}".encode() == piece_bytes(run.vocabulary.words[events[0].id])
    cold = {"text": "to be or ", "temperature": 0.0}
    straight = drawn_ids(served, tab, questions.Generate(**cold, drawn=5))
    assert drawn_ids(served, tab, questions.Generate(**cold, drawn=3, after=straight[:2])) == straight[2:]
    words = run.words("to be or ", count=3, seed=1)
    assert words[0] in {run.vocabulary.words[one] for one in spaces}
