"""A run folder that Hugging Face's transformers opens too, with the files by which it knows it; and sent to the Hub.

The Hub is Hugging Face's, or the server that `HF_ENDPOINT` names; huggingface_hub sends the files.
"""

import re
import shutil
from pathlib import Path

import msgspec
from torch import Tensor

from elman.config.remembered import recorded, used
from elman.errors import UserError, first_line
from elman.evaluation.result import static_results
from elman.export.folder import measured, new_folder, text_of, with_own
from elman.export.readme import Exported, load_model, rows_of, source_name, write_origin
from elman.export.step import Step, TorchStep
from elman.files import write_atomic
from elman.learning import checkpoint
from elman.learning.checkpoint import MODEL
from elman.network.encoders.characters import Characters
from elman.tasks.text.run import TextRun

KEPT = ("results.json", "vocabulary.tsv", "subwords.model")
"""Files of the run, if it has them, so that the folder remains a run."""

CODE = "modeling_elman.py"


def export_hub(run: TextRun, out: Path, *, data: str | None = None) -> Exported:
    """Write the run into a new folder in the form of Hugging Face's transformers, and compare it with the model.

    Raises UserError where transformers is missing, the folder is not empty, or what transformers opens there gives
    other log-probabilities.
    """
    from elman.hf import ElmanConfig, ElmanForCausalLM, ElmanTokenizer

    text, vocabulary = text_of(run, data), run.vocabulary
    with new_folder(out) as folder:
        for name in KEPT:
            if (run.path / name).exists():
                shutil.copyfile(run.path / name, folder / name)
        write_origin(run, folder)
        checkpoint.save(folder / MODEL, *load_model(run))
        spelled = isinstance(run.recipe.model.encoder, Characters)
        ElmanConfig(
            msgspec.to_builtins(run.recipe.model, str_keys=True),
            len(vocabulary),
            vocabulary.counts,
            vocabulary.words if spelled else None,
            recorded(used(run.recipe.model), places=False),
            architectures=[ElmanForCausalLM.__name__],
            auto_map={
                "AutoConfig": f"{Path(CODE).stem}.ElmanConfig",
                "AutoModelForCausalLM": f"{Path(CODE).stem}.ElmanForCausalLM",
            },
            dtype="float32",
            bos_token_id=run.first,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.eos,
        ).save_pretrained(folder)
        ElmanTokenizer(
            str(folder / "vocabulary.tsv"),
            str(folder / "subwords.model") if (folder / "subwords.model").exists() else None,
            options=msgspec.to_builtins(run.options),
        ).save_pretrained(folder)
        _write_generation(run, folder)
        write_atomic(folder / CODE, _CODE)
        step = Step(run.model)
        exported = with_own(run, step, out, [measured(run, folder / MODEL, _opened(folder, step), text)], text)
        write_atomic(folder / "README.md", _card(run, exported))
    return exported


_CODE = '''"""What transformers runs with trust_remote_code=True; needs elman itself (pip install 'elman[hf]')."""

from elman.hf import ElmanConfig, ElmanForCausalLM, ElmanTokenizer  # noqa: F401
'''


def _write_generation(run: TextRun, folder: Path) -> None:
    from transformers import GenerationConfig

    forbidden = list(run.unspeakable) or None
    ids = {"bos_token_id": run.first, "eos_token_id": run.vocabulary.eos, "pad_token_id": run.vocabulary.eos}
    GenerationConfig(do_sample=True, max_new_tokens=100, suppress_tokens=forbidden, **ids).save_pretrained(folder)


def _opened(folder: Path, beginning: Step) -> TorchStep:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    opened = AutoModelForCausalLM.from_pretrained(folder)

    def step(symbols: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        read = opened(symbols.unsqueeze(1), state=state)
        return read.logits.squeeze(1), *read.state

    return TorchStep(step, beginning)


def _card(run: TextRun, exported: Exported) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    results = static_results(run.path)
    evaluated = [
        EvalResult(
            task_type="text-generation",
            dataset_type="text",
            dataset_name=source_name(run),
            dataset_split=one.split,
            metric_type="perplexity",
            metric_value=round(one.perplexity, 2),
        )
        for one in results
    ]
    front = ModelCardData(
        library_name="elman",
        pipeline_tag="text-generation",
        tags=["elman", "recurrent"],
        model_name=run.recipe.title,
        eval_results=evaluated or None,
    )
    figures = [f"| {one.split} | {one.perplexity:.2f} | {one.tokens:,} |" for one in results]
    return "\n".join(
        [
            "---",
            front.to_yaml(),
            "---",
            "",
            f"# {run.recipe.title}",
            "",
            f"A recurrent language model of {len(run.vocabulary):,} symbols ({run.options.tokenisation}),"
            f" {sum(p.numel() for p in run.model.parameters()):,} parameters, trained with elman.",
            "",
            *(["| split | perplexity | tokens |", "|---|---|---|", *figures, ""] if figures else []),
            *rows_of(exported),
            "",
            *_USE,
            "",
        ]
    )


_USE = """```python
import elman.hf
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(FOLDER)
tokenizer = AutoTokenizer.from_pretrained(FOLDER)
inputs = tokenizer("the king", return_tensors="pt")
print(tokenizer.decode(model.generate(**inputs, max_new_tokens=20)[0]))
```

Its logits are log-probabilities in nats, and `state`, which takes the place of `past_key_values`, has a constant size.
`elman.load(FOLDER)` opens the folder as a run, as do `elman evaluate FOLDER` and the other commands.""".splitlines()


_NAME = re.compile(r"[\w.-]+/[\w.-]+")
NEEDS = "--push needs the package huggingface_hub: pip install 'elman[hf]'"


class Sent(msgspec.Struct, frozen=True):
    """A file of the folder and its bytes."""

    name: str
    bytes: int


class Pushed(msgspec.Struct, frozen=True):
    """What was sent, or would be: the name, whether only its owner sees it, the files, and the address of the commit.

    `commit` is empty where nothing was sent.
    """

    name: str
    private: bool
    files: list[Sent]
    commit: str


def require_name(name: str) -> str:
    """A name of the form USER/NAME; raises UserError for others, and where huggingface_hub is missing."""
    if not _NAME.fullmatch(name):
        raise UserError(f"--push {name}: write USER/NAME, as on the Hub of Hugging Face")
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise UserError(NEEDS) from None
    return name


def push(folder: Path, name: str, *, private: bool = False, dry_run: bool = False) -> Pushed:
    """Send all files of a folder in one commit to the repository USER/NAME, which is made where it is missing.

    The token comes from the environment (`HF_TOKEN`) or from `hf auth login`. With `dry_run` nothing is sent, and no
    server is asked. Raises UserError where the name is not one, the token is missing or refused, or the server cannot
    be reached.
    """
    require_name(name)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sent = [Sent(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
    if dry_run:
        return Pushed(name, private, sent, "")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # of the transport, which differs by version
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    disable_progress_bars()
    api = HfApi()
    try:
        api.create_repo(name, private=private, exist_ok=True)
        made = api.upload_folder(repo_id=name, folder_path=folder, commit_message="Model written by elman")
    except (HTTPError, OSError, ValueError) as error:  # of the network, the token, the name or the server
        raise UserError(f"--push {name}: {_reason(error)}; the folder {folder} is complete") from error
    return Pushed(name, private, sent, str(made.commit_url))


def _reason(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 401 or type(error).__name__ == "LocalTokenNotFoundError":
        return "the Hub does not know who is asking; set HF_TOKEN to a token that may write, or run `hf auth login`"
    if status == 403:
        return "the token may not write there; take one with the right to write, and a name of your own"
    return f"it could not be sent ({first_line(error)})"
