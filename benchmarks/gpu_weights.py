"""Keep the weights of a run in bf16, in small files: `python benchmarks/gpu_weights.py RUN --out FOLDER`.

A line of JSON has the bytes, and the validation perplexity before and after rounding.
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file

import elman

LARGEST, PART = 60e6, 15e6
"""Bytes of weights that are kept, and of each of their files."""


def keep(run: Path, out: Path, device: str) -> dict[str, object]:
    """Write the weights of a run rounded to bf16, and its recipe; what rounding changes on the validation text."""
    opened, how = elman.load(run, device=device), elman.EvaluationOptions(split="valid", streams=8, warm_up=70)
    exact = elman.evaluate(opened, options=how).perplexity
    parts: list[dict[str, torch.Tensor]] = [{}]
    with torch.no_grad():
        for name, parameter in opened.model.named_parameters():
            rounded = parameter.bfloat16()
            parameter.copy_(rounded)
            if sum(part.nbytes for part in parts[-1].values()) + rounded.nbytes > PART:
                parts.append({})
            parts[-1][name] = rounded.cpu().contiguous()
    size = sum(part.nbytes for group in parts for part in group.values())
    facts: dict[str, object] = {
        "bytes": size,
        "valid, 8 streams": exact,
        "rounded": elman.evaluate(opened, options=how).perplexity,
    }
    if size > LARGEST:
        facts["reason"] = f"not kept: more than {LARGEST:.0f} bytes"
    else:
        for index, part in enumerate(parts, start=1):
            save_file(part, out / f"{run.name}-{index}-of-{len(parts)}.safetensors")
        shutil.copy(run / "recipe.toml", out / f"{run.name}-recipe.toml")
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    print(json.dumps(keep(options.run, options.out, options.device)))


if __name__ == "__main__":
    main()
