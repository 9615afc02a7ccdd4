"""The programs in docs/python.md that use the parts."""

import re
from pathlib import Path

import pytest
import torch

from elman.testing import check_cell

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/python.md").read_text(encoding="utf-8")
PROGRAMS = [one for one in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "enn" in one]


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_run(program, tmp_path, monkeypatch, capsys):
    (tmp_path / "novel.txt").write_text("the cat saw a dog and the dog saw the cat " * 300)
    monkeypatch.chdir(tmp_path if "novel.txt" in program else ROOT)
    torch.manual_seed(0)
    names = {"__name__": "program"}
    exec(program.replace("epochs=20", "epochs=1"), names)
    if "Model" in names:
        assert 1 < float(capsys.readouterr().out) < 6, "better than a choice among the six words"
        assert Path("awd.safetensors").is_file()
    elif "LeakyLayers" in names:
        check_cell(names["Leaky"](share=0.25))
        assert names["states"].shape == (35, 20, 100)
    elif "Words" in names:
        perplexity, words = capsys.readouterr().out.split("\n", 1)
        assert 900 < float(re.search(r"[\d.]+", perplexity)[0]) < 1200, "random words"
        assert words.startswith("tensor([")
    elif "model" in names:
        inputs, targets = torch.randint(1000, (2, 7, 3))
        h, _ = names["core"](names["encoder"](inputs))
        log_prob, _ = names["model"].eval().log_prob(inputs, targets, names["model"].begin(3))
        names["output"].eval()
        torch.testing.assert_close(names["output"].log_prob(h, targets), log_prob)
    else:
        assert names["loss"].isfinite()
