"""Run folders with random weights, which a server opens, and a server in a thread."""

import contextlib
import json
import threading
import time
from collections import Counter

import torch

from elman import config
from elman.config.toml import decisive, dump_recipe
from elman.data.text.vocabulary import Vocabulary
from elman.kinds.music.pitches import Pitches
from elman.kinds.pairs.symbols import PairSymbols, learn_tokenisers
from elman.kinds.pairs.table import RawPair
from elman.learning.checkpoint import BestModel
from elman.serve.limits import Limits
from elman.serve.services import open_services, serve_run
from elman.tasks.open import open_run, task_of

WORDS = ["to", "be", "or", "not", "the", "king", "of", "a", "question", ",", ".", "!", "?"]
CONTEXTS = {
    "single": {"kind": "single"},
    "doc": {"kind": "mixture", "heads": {"1": 1, "2": 2}, "size": 5},
}


def text_recipe(contexts="single", encoder=None, cell="lstm", **data):
    return config.parse_recipe(
        {
            "title": "toy",
            "seed": 3,
            "model": {
                "encoder": encoder or {"kind": "lookup", "size": 6},
                "core": {"kind": "stack", "sizes": [7, 6], "cell": {"kind": cell}},
                "output": {"contexts": CONTEXTS[contexts]},
            },
            "training": {"epochs": 1, "optimiser": {"kind": "adam", "lr": 0.01}},
            "data": {"kind": "text", "tokenisation": "raw", "lowercase": True, **data},
        },
        "toy",
    )


def text_folder(folder, recipe=None, words=WORDS, *, unk=True):
    """A run on text over these words."""
    vocabulary = Vocabulary.from_counts(Counter(dict.fromkeys(words, 9)), add_unk=unk)
    return _folder(folder, recipe or text_recipe(), vocabulary, lambda: vocabulary.save(folder / "vocabulary.tsv"))


LINES = [
    *(f"The king asked the question of day {day}, and the answer was not to be known." for day in range(40)),
    *(f"吾輩は猫である。名前はまだ無い。第{day}話、王様は質問を聞いていた。" for day in range(40)),
    "To be, or not to be: that is the question, my lord.",
]
"""A text in two languages, in which subwords are found."""


def subword_folder(folder, recipe):
    """A run on text whose subwords are those of `LINES`."""
    from elman.data.text.subwords import FILE, train

    options = recipe.data.options
    model = train([line.lower() for line in LINES] if options.lowercase else LINES, options.subwords)
    vocabulary = Vocabulary.from_counts(Counter(dict.fromkeys(model.pieces, 0)), 0)

    def save():
        (folder / FILE).write_bytes(model.model)
        vocabulary.save(folder / "vocabulary.tsv")

    return _folder(folder, recipe, vocabulary, save)


def music_folder(folder, choice="bernoulli"):
    recipe = config.parse_recipe(
        {
            "title": "toy music",
            "model": {
                "encoder": {"kind": "frames", "size": 6},
                "core": {"kind": "stack", "sizes": [7]},
                "output": {"choice": {"kind": choice}},
            },
            "training": {"epochs": 1, "optimiser": {"kind": "adam", "lr": 0.01}},
            "data": {"kind": "music", "pitches": 88},
        },
        "toy",
    )
    return _folder(folder, recipe, Pitches(88), lambda: None)


def pairs_folder(folder):
    stack = {"sizes": [8]}
    recipe = config.parse_recipe(
        {
            "title": "toy pairs",
            "model": {
                "encoder": {"kind": "lookup", "size": 8},
                "source": {"encoder": {"kind": "lookup", "size": 8}, "stack": {"sizes": [4]}},
                "core": {"kind": "attentive", "stack": stack},
            },
            "training": {"epochs": 1, "optimiser": {"kind": "adam", "lr": 0.01}},
            "data": {"kind": "pairs", "tokenisation": "words"},
        },
        "toy",
    )
    options = recipe.data.options
    pairs = [RawPair("a b c d", "A B C D")] * 3
    symbols = PairSymbols.counted(pairs, learn_tokenisers(pairs, options), options, "toy")
    return _folder(folder, recipe, symbols, lambda: symbols.save(folder))


def _folder(folder, recipe, inputs, save):
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(dump_recipe(recipe))
    (folder / "data.json").write_text(json.dumps({"source": str(folder / "gone.txt"), "digest": "0"}))
    save()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = task_of(recipe).run.build(recipe, inputs)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(0, 0.5)
    facts = {"recipe": decisive(recipe), "vocabulary": inputs.digest, "step": 1, "epoch": 1.0, "valid_nll": None}
    BestModel(folder).save(model, facts)
    return folder


def service(folder, **limits):
    """The service of a run folder."""
    return serve_run("run", open_run(folder), Limits(**limits))


def answer(work):
    """What a piece of work returns."""
    try:
        while True:
            next(work)
    except StopIteration as stop:
        return stop.value


def drawn(stream):
    """The events of a stream."""
    return [event for event in stream if event is not None]


@contextlib.contextmanager
def serving(*folders, host="127.0.0.1", token=None, **limits):
    """A server in a thread: its port, and the API behind it."""
    from elman.serve.server import build_app, listen, server_of

    bounds = Limits(**limits)
    services = open_services(folders, torch.device("cpu"), bounds)
    app, api = build_app(services, bounds, host, token)
    server, listening = server_of(app, api), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield listening.getsockname()[1], api
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        api.worker.stop()
        assert not thread.is_alive()
