"""What the page without a server computes itself: subwords, readings, draws, notes, the search, and what it keeps."""

import collections
import math

import msgspec
import numpy as np
import pytest
import torch

import elman
from elman import config
from elman.config.inference import Beam, Sampling
from elman.config.text import SubwordOptions, TextOptions
from elman.data.batches import Source
from elman.data.text.portable import portable_rules
from elman.data.text.tokeniser import Detokeniser, Tokeniser, detokenise
from elman.decoding.beam import TIE, beam_search
from elman.decoding.sampling import weighed
from elman.kinds.music.static import arrays_of
from elman.kinds.pairs.static import length_factors
from elman.network.cores.core import Trace
from elman.network.output.choice import Surroundings
from elman.serve.prefixes import Scored
from elman.serve.questions import Generate
from elman.serve.static import defaults_of
from elman.serve.static_graphs import subword_facts
from elman.serve.text_reader import marks_of, read_text, token_shown, words_of
from support.javascript import modules, needs_node, run
from support.paragraphs import SPACED
from support.served import LINES, subword_folder, text_folder, text_recipe

pytestmark = [pytest.mark.slow, needs_node]

TEXTS = [
    "To be, or not to be? The king",
    "'Tis o'er th' king's well-beloved -- 3.14, 1,000 ... \"not\"\n\n\nof a question!\n",
    "Straße ÉTÉ İstanbul e\u0301te\u0301 ￼\u3000king\u00a0to 12:30 a_b",
    "\n\n to be\r\nor not \n",
    "吾輩は猫である。 名前は\nまだ無い",
    "一番｜獰悪《ど《う》あく》な種族［＃「種［＃ふ］族」に傍点］\nor\n\n \t\x1c\n",
    "नदी बिल्ली को पढ़ती है। می‌خواهم؟ 👩‍👩‍👧🇯🇵🇫🇷 1️⃣ co\u00adop (\u0301 ..\u0308 각",
    "two  spaces,\ttabs and\n a line\n\nwith <unk> <0xE3> 😀▁",
    "",
]
RUNS = {
    "raw": text_recipe("doc"),
    "words": text_recipe(tokenisation="words", lowercase=False),
    "characters": text_recipe(tokenisation="characters"),
    "exact": text_recipe(tokenisation="characters", eos="exact", normalisation="NFKC"),
    "paragraphs": text_recipe(tokenisation="raw", eos="paragraph", lowercase=False),
    "none": text_recipe(tokenisation="characters", eos="none", ruby="remove"),
    "bytes": text_recipe(tokenisation="bytes"),
    "subwords": text_recipe(tokenisation="subwords", subwords={"size": 600, "coverage": 0.999}),
    "pieces": text_recipe(
        tokenisation="subwords", lowercase=False, eos="paragraph", subwords={"kind": "bpe", "size": 600}
    ),
}
LETTERS = list("tobernhkigafqus ,.!?猫である。'-\r")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return modules(tmp_path_factory.mktemp("page"))


def folder_of(name, folder):
    recipe = RUNS[name]
    if recipe.data.options.tokenisation == "subwords":
        pytest.importorskip("sentencepiece", reason="subwords need elman[subwords]")
        return subword_folder(folder, recipe)
    if recipe.data.options.tokenisation == "bytes":
        return text_folder(folder, recipe, [*map(chr, range(128)), *(f"<0x{byte:02X}>" for byte in range(128, 256))])
    return text_folder(folder, recipe, LETTERS if recipe.data.options.tokenisation == "characters" else static_words())


def static_words():
    return ["to", "be", "or", "not", "the", "king", "of", "a", "question", ",", ".", "!", "?"]


def facts_of(opened):
    vocabulary = opened.vocabulary
    return {
        "reading": portable_rules(opened.options),
        "words": vocabulary.words,
        "unk": vocabulary.unk,
        "eos": vocabulary.eos,
        "subwords": subword_facts(opened.tokeniser.subwords, opened.options.subwords.kind),
    }


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_subwords_are_those_of_sentencepiece(page, kind):
    pytest.importorskip("sentencepiece", reason="subwords need elman[subwords]")
    from elman.data.text.subwords import train

    draw = np.random.default_rng(0)
    letters = np.array(list("abc 猫である。\u3000é\t😀▁<eos>0x41ﬁ\u0301 ｶﾞ\ufffd\0"))
    made = ["".join(draw.choice(letters, size)) for size in draw.integers(1, 30, 200)]
    lines = [*LINES, *TEXTS, *made, "<0x41> <unk> <?>", "  two  spaces  "]
    model = train(LINES, SubwordOptions(kind=kind, size=700, coverage=0.999))
    code = """
        import { Bytes, Subwords } from "./subwords.js";
        const cut = new Subwords(given.model, new Bytes(given.rules.bytes, given.rules.marker), given.rules.eos);
        return given.lines.map((one) => cut.encode(one));
    """
    rules = portable_rules(TextOptions(tokenisation="subwords"))
    found = run(page, code, {"model": subword_facts(model, kind), "rules": rules, "lines": lines})
    assert found == [model.encode(line) for line in lines]
    assert max(map(len, (piece for line in found for piece in line))) > 6, "whole words are among the pieces"


@pytest.mark.parametrize("name", RUNS)
def test_texts_are_read_shown_and_written_as_elman_does(page, tmp_path, name):
    opened = elman.load(folder_of(name, tmp_path / name))
    texts = TEXTS
    if name == "words":  # the page splits at white space, as --as-is does
        texts = ["to be , not the king 's\n\n a question ", *TEXTS[4:5]]
    code = """
        import { Reading } from "./reading.js";
        import { Writing } from "./writing.js";
        const reading = new Reading(given.facts);
        return given.texts.map((text) => {
          const pieces = reading.pieces(text);
          const ids = pieces.map((piece) => piece.id).filter((id) => id !== null && id !== undefined);
          const scored = ids.map((_, at) => ({ bits: at + 1, entropy: at, rank: at, space: at / 2 }));
          const writing = new Writing(reading);
          const written = ids.map((id) => writing.add(given.facts.words[id]));
          return { marks: reading.marks(pieces, scored), words: reading.wordsOf(pieces, scored), written,
            shown: ids.map((id) => reading.shown(given.facts.words[id])), ids };
        });
    """
    for text, found in zip(texts, run(page, code, {"facts": facts_of(opened), "texts": texts}), strict=True):
        read = read_text(opened, text)
        scored = [Scored(float(at + 1), at, float(at), at / 2) for at in range(read.length)]
        assert found["ids"] == list(read.symbols.ids), text
        expected = [
            (one.text, one.at, one.tokens, one.begins, one.bits, one.unknown, one.ends)
            for one in marks_of(opened, read, scored)
        ]
        shown = [
            (one["text"], one["at"], one["tokens"], one["begins"], one["bits"], one["unknown"], one["ends"])
            for one in found["marks"]
        ]
        assert shown == expected, text
        assert [tuple(one) for one in found["words"]] == list(words_of(opened, read, scored)), text
        words = opened.vocabulary.decode(read.symbols.ids)
        assert found["shown"] == [token_shown(opened, word) for word in words]
        if name != "words":
            undo = Detokeniser(opened.options)
            assert found["written"] == [undo.add(word) for word in words], text


def test_paragraphs_in_many_scripts_are_cut_and_written_as_elman_does(page):
    texts = [text for text, *_ in SPACED.values()]
    options = [TextOptions(tokenisation="raw"), TextOptions(tokenisation="raw", elisions=True)]
    tokens = [[Tokeniser(one).encode(text) for text in texts] for one in options]
    code = """
        import { Writing } from "./writing.js";
        return given.rules.map((rules, at) => given.texts.map((text, place) => {
          const cut = new RegExp(rules.token, "gu");
          const writing = new Writing({ rules, tokens: cut, inBytes: false });
          return [text.match(new RegExp(rules.part, "gu")).flatMap((part) => part.match(cut)),
            given.tokens[at][place].map((token) => writing.add(token)).join("")];
        }));
    """
    rules = [portable_rules(one) for one in options]
    found = run(page, code, {"rules": rules, "texts": texts, "tokens": tokens})
    for one, cuts, answers in zip(options, tokens, found, strict=True):
        assert answers == [[words, detokenise(words, one)] for words in cuts]


def test_draws_have_the_shares_that_elman_gives_them(page):
    log_probs = torch.randn(40, generator=torch.Generator().manual_seed(1)).mul(2).log_softmax(0)
    settings = [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.6}, {"temperature": 1.7, "top_k": 9, "top_p": 0.8}]
    code = """
        import { weighed, drawn, generator, best, entropy } from "./sampling.js";
        const random = generator(7);
        const shares = given.settings.map((one) => [...weighed(given.logProbs, one, 5)]);
        const counts = shares[4].map(() => 0);
        for (let draw = 0; draw < 4000; draw += 1) counts[drawn(shares[4], random)] += 1;
        return { shares, counts, best: best(given.logProbs, 3), entropy: entropy(given.logProbs),
          cold: [...weighed(given.logProbs, { ...given.settings[0], temperature: 0 })],
          equal: [...weighed([-1, -1, -1], { ...given.settings[0], top_k: 2 })] };
    """
    found = run(
        page,
        code,
        {"logProbs": log_probs.tolist(), "settings": [msgspec.structs.asdict(Sampling(**one)) for one in settings]},
    )
    for one, shares in zip(settings, found["shares"], strict=True):
        expected = weighed(log_probs.unsqueeze(0), Sampling(**one, forbidden=(5,)))[0].double().softmax(0)
        np.testing.assert_allclose(shares, expected, atol=1e-6)
    np.testing.assert_allclose(np.array(found["counts"]) / 4000, found["shares"][4], atol=0.03)
    assert found["best"] == log_probs.topk(3).indices.tolist()
    assert found["equal"] == [0.5, 0.5, 0]
    assert found["cold"].index(1) == int(log_probs.argmax())
    assert found["entropy"] == pytest.approx(float(torch.special.entr(log_probs.exp()).sum()) / math.log(2), abs=1e-5)


@pytest.mark.parametrize("kind", ["bernoulli", "nade"])
def test_notes_have_the_probabilities_of_elman(page, kind):
    surroundings = Surroundings(size=5, num_outputs=12)
    record = config.Bernoulli() if kind == "bernoulli" else config.NADE(size=7)
    choice = record.build(surroundings)
    with torch.no_grad():
        for parameter in choice.parameters():
            parameter.normal_(0, 0.7)
        contexts, log_prior = torch.randn(1, 3, 5), torch.randn(1, 3).log_softmax(-1)
        frames = (torch.rand(6, 12) < 0.3).float()
        right = choice.mixture_log_prob(contexts.expand(6, -1, -1), log_prior.expand(6, -1), frames)
        rows = torch.multinomial(log_prior[0].exp(), 4000, replacement=True)
        often = choice.sample(contexts[0, rows], 0.8, torch.Generator().manual_seed(0)).mean(0)
    arrays = arrays_of(choice)
    given = {
        "shapes": {name: list(one.shape) for name, one in arrays.items()},
        "data": [value for one in arrays.values() for value in one.flatten().tolist()],
        "contexts": contexts.flatten().tolist(),
        "prior": log_prior[0].tolist(),
        "frames": frames.int().tolist(),
    }
    code = """
        import { Notes } from "./notes.js";
        import { generator } from "./sampling.js";
        const notes = new Notes(given.shapes, Float32Array.from(given.data).buffer);
        const contexts = { data: Float32Array.from(given.contexts), dims: [1, 3, 5] };
        const prior = Float32Array.from(given.prior);
        const random = generator(1);
        const often = Array(12).fill(0);
        for (let draw = 0; draw < 4000; draw += 1) {
          notes.draw(contexts, prior, 0.8, random).forEach((on, at) => { often[at] += on / 4000; });
        }
        return { logProbs: given.frames.map((one) => notes.logProb(contexts, prior, one)), often,
          cold: [...notes.draw(contexts, Float32Array.of(0, -Infinity, -Infinity), 0, random)] };
    """
    found = run(page, code, given)
    np.testing.assert_allclose(found["logProbs"], right, atol=1e-4)
    np.testing.assert_allclose(found["often"], often, atol=0.05)
    assert found["cold"] == choice.sample(contexts[:, 0], 0.0, None)[0].int().tolist()


class Bigrams:
    """A model whose next symbol depends on the last one alone, as the search sees it."""

    def __init__(self, log_probs):
        self.table, self.output = log_probs, self

    def read(self, source):
        return torch.zeros(source.mask.shape[1], 1)

    def trace(self, symbols, state):
        return Trace((self.table[symbols],), (), None), state

    def log_probs(self, trace):
        return trace.levels[0]

    def reorder(self, state, rows):
        return state[rows]


@pytest.mark.parametrize(("size", "sure"), [(1, False), (4, False), (2, True), (3, True)])
def test_the_search_finds_what_elman_s_finds(page, size, sure):
    """A sure model has improbable ends long before the probable one, which the search goes on to."""
    table = torch.randn(8, 8, generator=torch.Generator().manual_seed(size))
    if sure:
        table[:, 3] += 16.0
        table[:, 0] += 6.0
    table = table.log_softmax(-1)
    beam = Beam(size=size, nbest=min(size, 3), max_length=7)
    mask = torch.ones(3, 1, dtype=torch.bool)
    (right,) = beam_search(Bigrams(table), Source(mask.long(), mask), beam, 0, (2,))
    code = """
        import { search } from "./beam.js";
        const step = async (symbols) =>
          ({ logProbs: symbols.map((one) => given.table[one]), attention: symbols.map(() => [1]) });
        const { size, nbest, factors, tie } = given;
        return search(step, { size, nbest, limit: 7, end: 0, forbidden: 2, factors, tie });
    """
    given = {"table": table.double().tolist(), "size": size, "nbest": min(size, 3)}
    found = run(page, code, given | {"factors": length_factors(7), "tie": TIE})
    assert [one["symbols"] for one in found] == [one.symbols for one in right]
    np.testing.assert_allclose([one["score"] for one in found], [one.score for one in right], atol=1e-5)
    assert [len(one["attention"]) for one in found] == [len(one.symbols) + 1 for one in right]


def test_only_new_words_are_computed_and_a_state_is_a_value(page):
    """A model that counts: its state is the sum of the symbols, and decides what follows."""
    words = [*static_words(), "<unk>", "<eos>"]
    rules = portable_rules(TextOptions(tokenisation="raw", lowercase=True))
    facts = {"reading": rules, "words": words, "unk": 13, "eos": 14, "first": 14, "component_layers": []}
    facts["states"] = [{"shape": [1, 1], "dtype": "float32", "values": [0.5]}]
    code = """
        import { TextModel, compared } from "./text-model.js";
        let calls = 0;
        const network = { async run({ symbols, state_0: state }) {
          calls += 1;
          const sum = state.data[0] + Number(symbols.data[0]);
          const scores = given.facts.words.map((_, id) => Math.sin(sum * (id + 1)));
          const norm = Math.log(scores.reduce((all, one) => all + Math.exp(one), 0));
          const logProbs = Float32Array.from(scores, (one) => one - norm);
          return { log_probs: { data: logProbs }, levels: { data: Float32Array.of(sum) },
            next_state_0: { type: "float32", data: Float32Array.of(sum), dims: [1, 1] } };
        } };
        const model = new TextModel(given.facts, network, null);
        const asked = async (work) => {
          const before = calls;
          const found = await work();
          return [calls - before, found];
        };
        const events = async (question, stop, name = "id") => {
          const found = [];
          const control = new AbortController();
          try {
            for await (const event of model.draw({ ...given.defaults, ...question }, control.signal)) {
              if (event.event === "token") found.push(event[name]);
              if (found.length === stop) control.abort();
            }
          } catch (error) { found.push(error.name); }
          return found;
        };
        const first = await asked(() => model.scores({ text: "to be or not" }));
        const grown = await asked(() => model.scores({ text: "to be or not the" }));
        const again = await asked(() => model.scores({ text: "to be or not" }));
        const long = await asked(() => model.scores({ text: "the ".repeat(80) + "king" }));
        const early = "the ".repeat(9) + "of";
        const back = await asked(() => model.scores({ text: early }));
        const fresh = (text) => new TextModel(given.facts, network, null).scores({ text });
        const alone = await fresh("the ".repeat(80) + "king");
        const greedy = await events({ text: "to", drawn: 4, temperature: 0 }, 9);
        const sample = await events({ text: "to", drawn: 6, seed: 5 }, 9);
        const same = await events({ text: "to", drawn: 6, seed: 5 }, 9);
        const branch = await events({ text: "to", drawn: 1, seed: 5, temperature: 0, after: sample.slice(0, 3) }, 9);
        const next = await model.nexts({ ...given.defaults, text: "to", count: 1 });
        const texts = [];
        for (const text of ["to", "to "]) texts.push(await events({ text, drawn: 3, seed: 6 }, 9, "text"));
        return { texts,
          first: first[0], grown: grown[0], again: again[0], long: long[0], alone: alone.bits - long[1].bits,
          computed: [grown[1].computed, again[1].computed], greedy, back: back[0],
          early: (await fresh(early)).bits - back[1].bits,
          sample, same, branch, next: next.words[0].id, stopped: await events({ text: "to", drawn: 50, seed: 1 }, 4),
          difference: await compared(model, model, "to be") };
    """
    found = run(page, code, {"facts": facts, "defaults": defaults_of(Generate)})
    assert (found["first"], found["grown"], found["again"], found["long"]) == (4, 1, 0, 80)
    assert found["computed"] == [1, 0]
    assert found["alone"] == pytest.approx(0, abs=1e-4)
    assert found["back"] == 1, "every state is kept, and the last outputs"
    assert found["early"] == pytest.approx(0, abs=1e-4)
    written, after_blank = map("".join, found["texts"])
    assert written == f" {after_blank}"
    assert len(found["sample"]) == 6
    assert found["sample"] == found["same"]
    assert 13 not in found["sample"], "an unknown word is never drawn"

    def likeliest(total):
        return max(set(range(15)) - {13}, key=lambda word: math.sin(total * (word + 1)))

    start = 0.5 + 14  # `to` is 0
    assert found["branch"] == [likeliest(start + sum(found["sample"][:3]))]
    for place, word in enumerate(found["greedy"]):
        assert word == likeliest(start + sum(found["greedy"][:place]))
    assert found["stopped"][-1] == "AbortError"
    assert len(found["stopped"]) == 5
    assert collections.Counter(one["difference"] for one in found["difference"]["words"]) == {0: 2}


def test_a_source_is_read_backwards_where_the_model_reads_so(page):
    """The model copies: target step t looks at the source's t-th symbol from its end, as the model reads it."""
    reading = portable_rules(TextOptions(tokenisation="words", lowercase=True, eos="none"))
    facts = {"reading": reading, "writing": reading, "subwords": None, "source": ["<unk>", "a", "b", "c"], "unk": 1}
    facts |= {"target": ["<eos>", "<unk>", "x", "y", "z"], "source_unk": 0, "end": 0, "tie": TIE}
    facts |= {"most_source": 5, "longest": [9] * 6, "length_factors": length_factors(9)}
    code = """
        import { PairModel } from "./pair-model.js";
        const floats = (data, dims) => ({ type: "float32", data: Float32Array.from(data), dims });
        const read = [];
        const source = { async run({ symbols }) {
          const ids = Array.from(symbols.data, Number);
          read.push(ids);
          return { state_0: floats([0], [1, 1]), memory_0: floats(ids, [1, ids.length, 1]) };
        } };
        const target = { async run({ symbols, state_0: state, memory_0: memory }) {
          const [length, rows] = [memory.dims[1], [...symbols.data.keys()]];
          const place = rows.map((row) => state.data[row]);
          const logProbs = place.flatMap((at) => Array.from({ length: 5 }, (_, id) =>
            (id === (at < length ? memory.data[at] + 1 : 0) ? -0.1 : id ? -5 - id : -50)));
          const attention = place.flatMap((at) => Array.from({ length }, (_, one) => Number(one === at % length)));
          return { log_probs: floats(logProbs, [rows.length, 5]), attention: floats(attention, [rows.length, length]),
            next_state_0: floats(place.map((at) => at + 1), [rows.length, 1]) };
        } };
        const model = (reversed) => new PairModel({ ...given.facts, reversed }, source, target);
        const ask = (reversed, text) => model(reversed).translated({ text, beam: 2, targets: 2 });
        return { read, forwards: await ask(false, " A  b\\nC"), backwards: await ask(true, "a b c"),
          long: await ask(true, "a a a a a a"), unknown: await ask(true, "q <eos>"), nothing: await ask(true, "  ") };
    """
    found = run(page, code, {"facts": facts})
    assert found["read"] == [[1, 2, 3], [3, 2, 1]]
    for name, text, looks in (("forwards", "x y z", [0, 1, 2, 0]), ("backwards", "z y x", [2, 1, 0, 2])):
        answer = found[name]
        assert answer["source"] == ["a", "b", "c"]
        assert answer["targets"][0]["text"] == text
        assert [row.index(1) for row in answer["targets"][0]["attention"]] == looks
        assert answer["targets"][0]["bits"] == pytest.approx(0.4 / math.log(2), abs=1e-5)
        assert len(answer["targets"]) == 2
    assert "a source of 6 symbols, the limit is 5" in found["long"]["note"]
    assert "none of the 2 symbols is in the source vocabulary" in found["unknown"]["note"]
    assert found["nothing"]["targets"] == []


def test_midi_files_are_written_and_read_on_the_page(page, tmp_path):
    mido = pytest.importorskip("mido", reason="MIDI files are made with elman[music]")
    steps = [[60, 64], [60], [], [60], [108], [21, 21 + 87]]
    code = """
        import { read, written } from "./midi.js";
        const bytes = written(given.steps, 4, 90);
        return [[...bytes], read(bytes, 4, [21, 108]), read(Uint8Array.from(given.file), 2, [48, 72])];
    """
    file = mido.MidiFile(ticks_per_beat=96)
    notes, drums = mido.MidiTrack(), mido.MidiTrack()
    notes += [mido.MetaMessage("track_name", name="a name"), mido.MetaMessage("set_tempo", tempo=750_000),
              mido.Message("program_change", program=3), mido.Message("note_on", note=60),
              mido.Message("note_on", note=62, time=96), mido.Message("note_on", note=60, velocity=0, time=0),
              mido.Message("note_on", note=90), mido.Message("note_off", note=62, time=48),
              mido.Message("note_off", note=90)]  # fmt: skip
    drums += [mido.Message("note_on", note=60, channel=9), mido.Message("note_off", note=60, channel=9, time=96)]
    file.tracks += [notes, drums]
    file.save(tmp_path / "made.mid")
    made, again, found = run(page, code, {"steps": steps, "file": list((tmp_path / "made.mid").read_bytes())})
    assert again == {"steps": steps, "tempo": pytest.approx(90, rel=1e-5), "left": 0}
    assert found == {"steps": [[60], [60], [62]], "tempo": 80, "left": 2}
    (tmp_path / "page.mid").write_bytes(bytes(made))
    read = mido.MidiFile(tmp_path / "page.mid")
    assert read.length == pytest.approx(len(steps) / 4 * 60 / 90, rel=1e-4)
    assert sum(one.type == "note_on" for one in read) == 5  # 108 is held
