"""One experiment from recipe to report: prepare the run folder, train, evaluate, sample."""

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import elman
from elman import config
from elman.build import build_model
from elman.data.catalog import is_known
from elman.data.corpus import Corpus, open_corpus
from elman.data.detokenise import detokenise
from elman.data.windows import EvaluationWindows, start_symbol
from elman.device import processor_name
from elman.encoders.lookup import Lookup
from elman.errors import UserError
from elman.evaluation.figures import figures, score_of, split_figures
from elman.evaluation.ngram import CountModel, KneserNey, Unigram
from elman.evaluation.perplexity import evaluate
from elman.evaluation.scoring import score_document, surprisal
from elman.files import write_atomic
from elman.generation import Sampling
from elman.learning.trainer import Trainer
from elman.learning.watching import Outcome, Watcher
from elman.model import LanguageModel
from elman.output.clusters import by_similarity
from elman.output.tree import Tree
from elman.run import Run, data_facts, load


class Experiment:
    """A recipe, its data and its run folder.

    Args:
        recipe: what to do.
        data: the text; None takes that of the run to resume, else the recipe's corpus.
        out: the run folder.
        device: where to train.
        resume: go on with the run in `out`.
        init: a run folder whose weights to start from, words mapped by their spelling.

    Raises:
        UserError: before anything is written, whenever something does not fit.

    """

    def __init__(
        self,
        recipe: config.Recipe,
        out: Path,
        *,
        data: str | Path | None = None,
        device: torch.device | str = "cpu",
        resume: bool = False,
        init: Path | None = None,
        progress: Any = None,
    ) -> None:
        self.recipe, self.out, self.device, self.resume = recipe, out, torch.device(device), resume
        _require_place(out, recipe, resume)
        source = data if data is not None else data_facts(out)["source"] if resume else recipe.data.corpus
        if source is None:
            raise UserError("no text to train on: give --data, or a recipe with data.corpus")
        self.corpus: Corpus = open_corpus(_from_anywhere(str(source)), recipe.data.text, progress=progress)
        if resume:
            _require_same_data(out, self.corpus)
        torch.manual_seed(recipe.seed)
        vocabulary = self.corpus.vocabulary
        self.model: LanguageModel = build_model(recipe.model, len(vocabulary), vocabulary.counts)
        if init is not None and not resume:
            start_from(self.model, vocabulary.words, load(init))
        if not resume:
            _cluster_by_similarity(recipe.model.output.choice, self.model, init)
        self.model.to(self.device)
        self.trainer = Trainer(
            recipe,
            self.model,
            self.corpus.split("train").tokens,
            self._validate,
            out,
            {"vocabulary": self.corpus.vocabulary.digest, "data": self.corpus.digest},
        )

    @property
    def first(self) -> int:
        """The symbol that precedes a text."""
        return start_symbol(self.corpus.vocabulary)

    def train(self, watchers: Sequence[Watcher] = (), max_minutes: float | None = None) -> Outcome:
        """Train; see `Trainer.run`."""
        self.trainer.watchers = tuple(watchers)
        if self.resume and (self.out / "checkpoint.safetensors").exists():
            self.trainer.resume()
        else:
            self._write_folder()
        return self.trainer.run(max_minutes)

    def finish(self, prompts: Sequence[str] = ("", ""), progress: Any = None) -> list[dict[str, Any]]:
        """Evaluate the best model on the valid and test splits from one stream, draw samples, write the results."""
        run = load(self.out, self.device)
        results = [
            {
                **split_figures(
                    run.model,
                    self.corpus.split(name),
                    self.first,
                    skip_first=self.recipe.evaluation.skip_first,
                    advance=progress,
                ),
                "method": "static",
                "model": "best",
            }
            for name in ("valid", "test")
        ]
        write_json(self.out / "results.json", results)
        write_json(self.out / "samples.json", [sample(run, prompt, seed) for seed, prompt in enumerate(prompts)])
        write_json(self.out / "surprisal.json", self._surprisal(run))
        return results

    def baselines(self, order: int = 5, splits: Sequence[str] = ("valid", "test")) -> list[dict[str, Any]]:
        """Unigram and Kneser-Ney n-gram figures on the same splits; also written to baselines.json."""
        train = self.corpus.split("train").tokens
        models: dict[str, CountModel] = {
            "unigram": Unigram.train(train, len(self.corpus.vocabulary)),
            f"Kneser-Ney {order}-gram": KneserNey.train(train, len(self.corpus.vocabulary), order),
        }
        rows = []
        for name, model in models.items():
            for split in map(self.corpus.split, splits):
                log_probs = model.log_prob(split.tokens, [self.first])
                rows.append({"name": name, **figures(score_of(log_probs), split)})
        write_json(self.out / "baselines.json", rows)
        return rows

    def _validate(self, model: LanguageModel) -> float:
        rules = self.recipe.evaluation
        windows = EvaluationWindows(
            self.corpus.split("valid").tokens,
            self.first,
            streams=rules.streams,
            length=rules.length,
            warm_up=rules.warm_up,
            skip_first=rules.skip_first,
        )
        return evaluate(model, windows).nll

    def _write_folder(self) -> None:
        self.corpus.vocabulary.save(self.out / "vocabulary.tsv")
        write_json(self.out / "data.json", self.corpus.describe())
        write_json(self.out / "environment.json", environment(self.device))
        # Last, since a folder with a recipe is a run: killed before this, the folder is still free.
        write_atomic(self.out / "recipe.toml", config.dump_recipe(self.recipe))

    def _surprisal(self, run: Run, tokens: int = 120) -> dict[str, Any]:
        """A passage of the test split with the surprisal of each word."""
        ids = np.asarray(self.corpus.split("test").tokens[:tokens], dtype=np.int64)
        log_probs = next(score_document(run.model, [ids], self.first))
        words = self.corpus.vocabulary.decode(ids)
        bits = surprisal(log_probs).round(3).tolist()
        return {"sentence": [{"word": w, "surprisal": b} for w, b in zip(words, bits, strict=True)]}


def start_from(model: LanguageModel, words: Sequence[str], run: Run) -> int:
    """Copy the weights of a run into a model; rows that stand for words are mapped by the words' spelling.

    Returns:
        how many words were found in the other vocabulary.

    Raises:
        UserError: the two networks have parameters of other names or sizes.

    """
    theirs = dict(run.model.named_parameters())
    known = run.vocabulary.ids
    here = [index for index, word in enumerate(words) if word in known]
    there = [known[words[index]] for index in here]
    for name, parameter in model.named_parameters():
        other = theirs.get(name)
        by_word = len(parameter.shape) > 0 and parameter.shape[0] == len(words)
        same_rest = other is not None and parameter.shape[1:] == other.shape[1:]
        if other is not None and by_word and same_rest and other.shape[0] == len(run.vocabulary):
            with torch.no_grad():
                parameter[here] = other[there]
        elif other is not None and parameter.shape == other.shape:
            with torch.no_grad():
                parameter.copy_(other)
        else:
            found = "missing" if other is None else tuple(other.shape)
            raise UserError(
                f"--init {run.path}: its network differs: {name} is {found} there and {tuple(parameter.shape)} here;"
                " use the same model section in both recipes"
            )
    return len(here)


def _cluster_by_similarity(recipe: object, model: LanguageModel, init: Path | None) -> None:
    """Where the recipe asks for it, put the words of a tree together by the vectors that training starts from."""
    if not (isinstance(recipe, config.Tree) and recipe.assignment == "similarity"):
        return
    if init is None:
        raise UserError(
            'model.output.choice.assignment = "similarity" needs word vectors that have learnt something: train with'
            ' "frequency" first and give that run with --init, or keep "frequency"'
        )
    tree, encoder = model.output.choice, model.encoder
    assert isinstance(tree, Tree)
    assert isinstance(encoder, Lookup)
    tree.arrange(by_similarity(encoder.weight.detach().numpy(), len(tree.cluster_weight)))


def sample(run: Run, prompt: str, seed: int, count: int = 120, temperature: float = 0.9) -> dict[str, Any]:
    """A sample as samples.json holds it."""
    sampling = Sampling(temperature=temperature, forbidden=run.unspeakable)
    words = run.words(prompt, count=count, seed=seed, sampling=sampling)
    text = detokenise(words, run.recipe.data.text)
    return {"prompt": prompt, "text": text, "temperature": temperature, "seed": seed}


def environment(device: torch.device) -> dict[str, Any]:
    """The software and the machine, as environment.json holds them."""
    return {
        "elman": elman.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": processor_name(device),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_json(path: Path, value: Any) -> None:
    """Write JSON, wholly or not at all."""
    write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def _from_anywhere(source: str) -> str:
    """A source that means the same from every working folder: names stay, paths become absolute."""
    return source if is_known(source) else str(Path(source).absolute())


def _require_place(out: Path, recipe: config.Recipe, resume: bool) -> None:
    existing = out / "recipe.toml"
    if not resume:
        if existing.exists():
            raise UserError(f"{out} already holds a run; add --resume to go on with it, or choose another --out")
        if out.exists() and not out.is_dir():
            raise UserError(f"{out} is a file; choose a folder for --out")
        return
    if not existing.exists():
        raise UserError(f"{out} is not a run folder: it has no recipe.toml; nothing to resume, leave out --resume")
    changed = config.changed_keys(config.load_recipe(existing), recipe)
    if changed:
        raise UserError(
            f"--resume with a changed recipe: {', '.join(changed)} differ from {existing}; resume with the recipe of"
            " the run (leave RECIPE and --set out), or start a new run with --init"
        )


def _require_same_data(out: Path, corpus: Corpus) -> None:
    facts = data_facts(out)
    if facts["digest"] != corpus.digest:
        raise UserError(
            f"--resume with other data: the text of {corpus.source} has changed since {out} was started (its digest is"
            f" {corpus.digest[:12]}, it was {facts['digest'][:12]});"
            " give the same --data, or start a new run with --init"
        )
