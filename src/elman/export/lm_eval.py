"""The model `elman` of lm-evaluation-harness (pip install 'elman[lm-eval]').

Versions of the harness that find plug-ins by their entry points know it once elman is installed. For those that do not,
0.4.13 among them, `python -m elman.export.lm_eval` is their command `lm_eval` with this model registered.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from elman.errors import UserError, one_line
from elman.export.harness import Answers, End
from elman.network.device import choose_device, usable_threads
from elman.tasks.hub import fetched
from elman.tasks.text.run import TextRun

NAME = "elman"
ANY_SIZE = 32
"""Texts read side by side where the harness leaves their number open."""


def _model() -> type:
    try:
        from lm_eval.api.model import LM
    except ImportError:
        raise UserError("this needs the package lm_eval: pip install 'elman[lm-eval]'") from None

    class ElmanLM(LM):
        """A run on text: `--model elman --model_args run=RUN[,end=never][,unknown_as_unk=true][,seed=0][,threads=1]`.

        RUN is a folder or `hf://USER/NAME`; `batch_size` may be a word such as `auto`. Raises UserError where the
        folder is not a run on text.
        """

        def __init__(
            self,
            run: str,
            device: str | None = None,
            batch_size: int | str = ANY_SIZE,
            max_batch_size: int | None = None,  # noqa: ARG002 - the harness gives it to every model
            end: End = "auto",
            unknown_as_unk: bool = False,
            seed: int = 0,
            threads: int | None = None,
        ) -> None:
            super().__init__()
            if threads is not None:
                torch.set_num_threads(usable_threads(int(threads)))
            size = int(batch_size) if str(batch_size).isdigit() else ANY_SIZE
            # The harness asks for the first GPU where no device is named; without a GPU that is the CPU.
            unnamed = device in (None, "cuda", "cuda:0") and not torch.cuda.is_available()
            opened = TextRun(fetched(Path(run)), choose_device("cpu" if unnamed else device or "auto"))
            self.answers = Answers(
                opened, batch_size=max(1, size), end=end, unknown_as_unk=bool(unknown_as_unk), seed=int(seed)
            )

        def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:  # noqa: ARG002
            """The log-probability (nats) of each continuation, and whether it is the greedy one."""
            documents = [(one.task_name, one.doc_id) for one in requests]
            found = self.answers.continuations([(str(one.args[0]), str(one.args[1])) for one in requests], documents)
            return self._kept("loglikelihood", requests, [tuple(one) for one in found])

        def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:  # noqa: ARG002
            """The log-probability (nats) of each text."""
            found = self.answers.texts([str(one.args[0]) for one in requests])
            return self._kept("loglikelihood_rolling", requests, found)

        def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:  # noqa: ARG002
            found = self.answers.generate([(str(one.args[0]), _options(one.args[1])) for one in requests])
            return self._kept("generate_until", requests, found)

        def _kept(self, kind: str, requests: Sequence[Any], found: list[Any]) -> list[Any]:
            for request, answer in zip(requests, found, strict=True):
                self.cache_hook.add_partial(kind, request.args, answer)
            return found

    return ElmanLM


def _options(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {"until": given}


def __getattr__(name: str) -> Any:
    if name != "ElmanLM":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = _model()
    return globals()[name]


def register() -> None:
    """Make the harness know the model, unless it found the entry point; raises UserError where it is missing."""
    model = __getattr__("ElmanLM")
    import lm_eval.models  # noqa: F401 - its own models, which are registered when it is imported
    from lm_eval.api.registry import register_model

    try:
        register_model(NAME)(model)
    except ValueError:  # its entry point, found by a version that reads them
        return


def main() -> int:
    """The command `lm_eval` with the model `elman`; the exit status."""
    try:
        register()
        from lm_eval.__main__ import cli_evaluate

        cli_evaluate()
    except UserError as error:
        print(f"elman: {one_line(str(error))}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
