"""Correctness and speed of the kernels on a GPU, all in one call: `python benchmarks/gpu_kernels.py --out runs/gpu`.

The sections, in the order of their value, each in a process of its own with a limit of time, so that neither an error
nor a kernel that never ends stops the others:

    environment   device, driver, versions, clocks, rates of memory and of products in bf16
    values        layers on the device beside the plain loop in float64 on the CPU: outputs, states, every gradient
    layers        single layers, forward and backward, beside cuDNN and flashrnn; one token at a time
    steps         whole training steps of AWD-LSTM, MoS and DOC; how long the GPU computes in each
    persistent    the same in bf16 by the persistent kernels, ELMAN_PERSISTENT=1
    likelihood    the likelihood of softmax and mixtures beside its plain formula
    compiled      registers and shared memory of the persistent kernels; needs NVRTC (`elman[gpu]`), and no GPU
    tests         those of the kernels of flash-linear-attention and Triton, and of devices, by pytest

OUT/kernels.json has the rows of every section, or the reason why there are none, and is complete after each section;
OUT/kernels/ has their output. `--tiny --device cpu` tries everything in small. Times are medians in ms, taken in turns;
the ratio is the reference's time divided by elman's, and of values the tolerance divided by the error.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import elman
import gpu
import mixture
import references
import timing
import whole
from elman.network.fast import policy
from gpu import attempt, in_time, milliseconds, row
from gpu_layers import TOLERANCE, compiled, layers, values

SECONDS = {
    "environment": 40,
    "values": 120,
    "layers": 120,
    "steps": 150,
    "persistent": 100,
    "likelihood": 60,
    "compiled": 60,
    "tests": 240,
}
TESTS = {
    "flash-linear-attention": "tests/network/cells/test_fla.py",
    "Triton likelihood": "tests/network/output/test_triton_rows.py",
    "networks on devices": "tests/network/test_devices.py",
}


def environment(options: argparse.Namespace) -> None:
    facts = {"python": sys.version.split()[0], "torch": torch.__version__, "cuda": torch.version.cuda}
    facts |= {"elman": elman.__version__, "device": str(options.device)}
    if options.device.type == "cuda":
        properties = torch.cuda.get_device_properties(options.device)
        facts |= {"name": properties.name, "multiprocessors": properties.multi_processor_count}
        facts |= {"memory_gb": properties.total_memory / 1e9, "cudnn": torch.backends.cudnn.version()}
    row("versions", **facts)
    with attempt("nvidia-smi"):
        query = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu"
        command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
        row("nvidia-smi", **{query: subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()})
    size, numbers = (64, 1 << 16) if options.tiny else (8192, 1 << 28)
    with attempt("rates"):
        a, b = (torch.randn(size, size, device=options.device).bfloat16() for _ in range(2))
        source = torch.randn(numbers, device=options.device)
        target = torch.empty_like(source)
        found = milliseconds("rates", {"product": lambda: a @ b, "copy": lambda: target.copy_(source)}, options)
        row(f"bf16 product of {size} x {size}", tflops=2e-9 * size**3 / found["product"])
        row(f"copy of {4 * numbers >> 20} MB, read and written", tb_per_s=8e-9 * numbers / found["copy"])


def steps(options: argparse.Namespace) -> None:
    for name, network in gpu.NETWORKS.items():
        for precision in ("bf16",) if policy.PERSISTENT else ("bf16", "float32"):
            what = f"step of {name}, {precision}"
            if in_time(what, options):
                with attempt(what):
                    _step(what, name, network, precision, options)


def _step(what: str, name: str, network: gpu.Network, precision: str, options: argparse.Namespace) -> None:
    settings = [f"training.precision={precision}", *(network.tiny if options.tiny else ())]
    recipe = elman.load_recipe(gpu.ROOT / network.recipe, settings)
    graphs = [key for key in type(recipe.training).__struct_fields__ if "graph" in key]
    options.words = 50 if options.tiny else 10_000
    length, rows = recipe.training.window.length, recipe.training.batch_size
    words = whole.draw(options, length, rows) if options.data is None else _words(options, length, rows)
    batch = whole.Batch(words[:-1], words[1:])
    made = {}
    for kind in ("plain", *graphs):
        given = (
            recipe
            if kind == "plain"
            else elman.load_recipe(gpu.ROOT / network.recipe, [*settings, f"training.{kind}=true"])
        )
        model = elman.build_model(given.model, num_words=options.words).to(options.device)
        made[kind] = whole.training_step(model, given, batch)
    if options.published is not None:
        more = argparse.Namespace(model=name, folder=options.published, device=options.device)
        with attempt(f"published code of {name}"):
            made["published"] = references.published(more)["train"]
    found = milliseconds(what, made, options)
    published = found.pop("published", None)
    reference = network.step_ms if published is None else published
    about = {} if published is not None else {"of": "the published code on an H100, docs/cost.md"}
    for kind, ours in found.items():
        parts = _parts(made[kind], options)
        row(what if kind == "plain" else f"{what}, {kind}", reference, ours, **about, **parts)
    if not graphs:
        row(f"{what}, CUDA graphs", skipped="elman has no such option")


def _words(options: argparse.Namespace, length: int, rows: int) -> Tensor:
    """The beginning of the training text in columns, words numbered by frequency."""
    (path,) = sorted(options.data.glob("*train.txt"))[:1]
    text = path.read_text(encoding="utf-8").replace("\n", " <eos> ").split()
    order = {word: index for index, (word, _) in enumerate(Counter(text).most_common(options.words))}
    chosen = [order.get(word, 0) for word in text[: (length + 1) * rows]]
    return torch.tensor(chosen).view(rows, length + 1).t().contiguous().to(options.device)


def _parts(step: Callable[[], object], options: argparse.Namespace, times: int = 5) -> dict[str, float]:
    """Ms per step: until the CPU has started it, while the GPU computes, and the GPU's kernels in number."""
    if options.device.type != "cuda":
        return {}
    torch.cuda.synchronize()
    begun = time.perf_counter()
    step()
    launched = 1e3 * (time.perf_counter() - begun)
    kinds = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[kinds.CPU, kinds.CUDA]) as profiler:
        for _ in range(times):
            step()
        torch.cuda.synchronize()
    on_gpu = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    busy = sum(event.time_range.elapsed_us() for event in on_gpu if not getattr(event, "is_user_annotation", False))
    return {"cpu_ms": launched, "gpu_busy_ms": busy / times / 1e3, "kernels": len(on_gpu) / times}


def likelihood(options: argparse.Namespace) -> None:
    shapes = {"tiny": (6, 2, 40, 8)} if options.tiny else {key: mixture.SHAPES[key] for key in ("mixture", "flat")}
    for part, shape in shapes.items():
        for activation in ("softmax", "sigsoftmax"):
            what = f"likelihood, {part}, {activation}"
            if in_time(what, options):
                with attempt(what):
                    runs = {form: mixture.steps(shape, form, activation, options.device) for form in mixture.FORMS}
                    for mode in ("train", "evaluate"):
                        found = milliseconds(what, {form: run[mode] for form, run in runs.items()}, options)
                        row(f"{what}, {mode}", found.get("plain"), found.get("kernel"))


def tests(options: argparse.Namespace) -> None:
    for what, path in list(TESTS.items())[: 1 if options.tiny else None]:
        if in_time(what, options):
            log = options.out / "kernels" / f"pytest-{Path(path).stem}.txt"
            more = ["--collect-only"] if options.tiny else []
            reason = gpu.Process(["-m", "pytest", "-q", "-rs", *more, path], log).wait(options.until)
            ends = log.read_text(errors="replace").strip().splitlines()[-1:]
            row(f"pytest, {what}", **({"result": " ".join(ends)} if reason is None else {"error": reason}))


def conduct(options: argparse.Namespace) -> dict[str, Any]:
    """Each section in a process of its own; the results, which are in OUT/kernels.json after every section too."""
    folder, found, end = options.out / "kernels", {}, time.monotonic() + 60 * options.minutes
    for section in options.sections:
        rows, seconds = folder / f"{section}.jsonl", min(SECONDS[section], end - time.monotonic())
        folder.mkdir(parents=True, exist_ok=True)
        rows.unlink(missing_ok=True)
        if seconds < 10:
            found[section] = {"reason": "no time left", "rows": []}
        else:
            begun = time.monotonic()
            command = [__file__, *sys.argv[1:], "--alone", section, str(seconds)]
            env = {"ELMAN_PERSISTENT": "1"} if section == "persistent" else {}
            reason = gpu.Process(command, folder / f"{section}.log", rows, env).wait(begun + seconds + 30)
            lines = [json.loads(line) for line in rows.read_text().splitlines() if line.endswith("}")]
            found[section] = {"seconds": round(time.monotonic() - begun, 1), "rows": lines}
            found[section] |= {} if reason is None else {"reason": reason}
        (options.out / "kernels.json").write_text(json.dumps(found, indent=1) + "\n")
    return found


def show(found: dict[str, Any]) -> None:
    """A short table: of values those that fail and the worst of each precision; of the rest figures and errors."""
    rows = [one for part in found.values() for one in part["rows"]]
    compared = [one for one in rows if "worst" in one]
    made = [one for one in rows if one["what"].startswith("compiled")]
    kept = [
        min((one for one in compared if one["what"].endswith(end)), key=lambda one: one["ratio"], default={})
        for end in TOLERANCE
    ]
    shown = [
        one
        for one in rows
        if (one in kept or "fails" in one or "error" in one or ("ratio" in one and "worst" not in one))
        and one not in made
    ]
    print(gpu.table(("what", "reference", "ours", "ratio", "gpu_busy_ms", "cpu_ms", "error"), shown))
    if made:
        print(gpu.table(("what", "forward", "backward", "blocks", "shared_kb", "skipped", "error"), made))
        print("forward, backward: registers of a thread and bytes that it spills")
    print(f"{len(compared)} layers beside float64, of which {sum('fails' in one for one in compared)} fail")
    for section, part in found.items():
        print(f"{section}: {part.get('reason', 'complete')}, {len(part['rows'])} rows")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=10.0, help="sections for which no time is left are skipped")
    parser.add_argument("--sections", nargs="+", choices=SECONDS, default=list(SECONDS))
    parser.add_argument("--data", type=Path, help="a folder with train.txt of Penn Treebank (default: random words)")
    parser.add_argument("--published", type=Path, help="checkouts of the published code, as for references.py")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--alone", nargs=2, metavar=("SECTION", "SECONDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out = options.out.absolute()
    if options.alone is None:
        found = conduct(options)
        show(found)
        return
    section, seconds = options.alone
    options.until = time.monotonic() + float(seconds)
    options.device = timing.choose_device(options.device)
    options.repetitions = 1 if options.tiny else options.repetitions
    torch.manual_seed(time.time_ns() % 2**31)  # fresh inputs every time
    section_of = {"environment": environment, "values": values, "layers": layers, "steps": steps, "persistent": steps}
    (section_of | {"likelihood": likelihood, "compiled": compiled, "tests": tests})[section](options)


if __name__ == "__main__":
    main()
