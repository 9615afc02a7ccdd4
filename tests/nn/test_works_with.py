"""Models of parts in other people's programs: loaders, wrappers, trainers, compilers, transforms and exports."""

import copy
import inspect
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_model, save_model
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.utils.data import DataLoader, Dataset

from elman import nn as enn
from support.words import V, Words, mixture

RECURRENCES = [one for one in vars(enn).values() if inspect.isclass(one) and one.__mro__[1] is enn.Recurrent]


class Lines(Dataset):
    """Symbols in their order, round and round, under the names that trainers of transformers expect."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        piece = torch.arange(index, index + 9) % V
        return {"input_ids": piece[:-1], "labels": piece[1:]}


class Loss(Words):
    """A model whose `forward` returns its loss, of sequences [B, T]."""

    def forward(self, input_ids, labels=None):
        hidden, _ = self.core(self.encoder(input_ids.t()))
        return {"loss": self.output.nll(hidden, labels.t())}


def plain(module):
    """The same module without fused kernels."""
    for part in module.modules():
        if isinstance(part, enn.Recurrent | enn.Output):
            part.fused = False
    return module


def test_a_loop_with_a_loader_learns():
    model = Loss(mixture, weight_drop=0.1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(15):
        for batch in DataLoader(Lines(), batch_size=4, shuffle=True):
            optimiser.zero_grad()
            loss = model(**batch)["loss"]
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    assert sum(losses[-3:]) < 0.7 * sum(losses[:3])


def test_distributed_data_parallel(tmp_path):
    """One process of a group of its own: every parameter is reduced, and the gradients are those without it."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        model = Loss(mixture)
        alone = copy.deepcopy(model)
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        batch = next(iter(DataLoader(Lines(), batch_size=4)))
        for one in (wrapped, alone):
            one(**batch)["loss"].backward()
        for mine, theirs in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_transformers(tmp_path):
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate")
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        str(tmp_path), num_train_epochs=15, per_device_train_batch_size=4, learning_rate=0.1, use_cpu=True,
        report_to=[], save_strategy="epoch", save_total_limit=1, disable_tqdm=True, logging_steps=3,
    )  # fmt: skip
    model = Loss()
    trainer = Trainer(model, arguments, train_dataset=Lines())
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert losses[-1] < 0.8 * losses[0]
    saved = Loss()
    load_model(saved, next(tmp_path.rglob("model.safetensors")))
    for mine, theirs in zip(saved.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path):
    lightning = pytest.importorskip("lightning", reason="Lightning is not installed")

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.losses = Loss(), []

        def training_step(self, batch, index):
            loss = self.model(**batch)["loss"]
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 0.1)

    module = Module()
    trainer = lightning.Trainer(
        max_epochs=15, accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=tmp_path,
        enable_model_summary=False, enable_checkpointing=False,
    )  # fmt: skip
    trainer.fit(module, DataLoader(Lines(), batch_size=4))
    assert module.losses[-1] < 0.8 * module.losses[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recurrence", RECURRENCES)
def test_every_recurrence_is_one_graph(recurrence):
    """Forward and backward, as torch's compiler reads them."""
    torch.compiler.reset()
    core = recurrence(4, 8)
    compiled = torch.compile(core, backend="eager", fullgraph=True)
    xs = torch.randn(2, 3, 4)
    gradients = []
    for one in (compiled, core):
        outputs, _ = one(xs)
        gradients.append(torch.autograd.grad(outputs.square().sum(), [*core.parameters()], allow_unused=True))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("output", [None, mixture])
def test_a_model_of_words_is_one_graph(output):
    torch.compiler.reset()
    model = plain(Words(output, weight_drop=0.4, between_dropout=0.2))
    compiled = torch.compile(lambda ids: model.output.nll(model(ids[:-1])[0], ids[1:]), backend="eager", fullgraph=True)
    ids = torch.randint(V, (4, 2))
    assert compiled(ids).requires_grad
    model.eval()
    torch.testing.assert_close(compiled(ids), model.output.nll(model(ids[:-1])[0], ids[1:]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(shutil.which("g++") is None or sys.platform == "win32", reason="torch.compile needs a compiler")
def test_compiled_code_computes_the_same():
    torch.compiler.reset()
    model = plain(Words(recurrence=enn.GRU))
    compiled = torch.compile(model, fullgraph=True)
    ids = torch.randint(V, (3, 2))
    found = []
    for one in (compiled, model):
        loss = model.output.nll(one(ids)[0], ids)
        found.append((loss, torch.autograd.grad(loss, [*model.parameters()])))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("output", [None, mixture])
def test_under_autocast_the_loss_is_that_of_the_weights_type(output):
    model, ids = Words(output), torch.randint(V, (5, 3))
    expected = model.output.nll(model(ids)[0], ids)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model.output.nll(model(ids)[0], ids)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected)
    loss.backward()


@pytest.mark.parametrize("output", [None, mixture])
def test_the_transforms_of_torch_func(output):
    """Gradients for each of three models at once, and for each sequence."""
    models, ids = [plain(Loss(output)) for _ in range(3)], torch.randint(V, (5, 4))
    parameters, buffers = stack_module_state(models)
    assert not buffers

    def loss(arrays, ids):
        return functional_call(models[0], arrays, (ids[:, :-1], ids[:, 1:]))["loss"]

    every = vmap(grad(loss), in_dims=(0, None))(parameters, ids)
    for number, model in enumerate(models):
        model(ids[:, :-1], ids[:, 1:])["loss"].backward()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(every[name][number], parameter.grad)
    single = {name: one[0] for name, one in parameters.items()}
    by_sequence = vmap(grad(loss), in_dims=(None, 0))(single, ids.unsqueeze(1))
    for name, one in by_sequence.items():
        torch.testing.assert_close(one.mean(0), every[name][0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("output", [None, mixture])
def test_an_exported_program_reads_any_number_of_columns(output):
    class Next(Words):
        def forward(self, ids):
            return self.output.log_probs(super().forward(ids)[0])

    model = Next(output).eval()
    program = torch.export.export(
        model, (torch.randint(V, (3, 2)),), dynamic_shapes=({1: torch.export.Dim("columns")},)
    )
    ids = torch.randint(V, (3, 5))
    torch.testing.assert_close(program.module()(ids), model(ids))


@pytest.mark.parametrize("tied", [False, True])
def test_copies_and_saved_weights(tied, tmp_path):
    def made():
        model = Words(mixture)
        if tied:
            model.output = enn.Softmax(6, V, weight=model.encoder.weight)
        return model

    model, other, third = made(), made(), made()
    ids = torch.randint(V, (5, 3))
    expected = model.output.log_probs(model(ids)[0])
    twin = copy.deepcopy(model)
    other.load_state_dict(model.state_dict())
    save_model(model, str(tmp_path / "model.safetensors"))
    load_model(third, str(tmp_path / "model.safetensors"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    for one in (twin, other, third):
        torch.testing.assert_close(one.output.log_probs(one(ids)[0]), expected)
        assert len([*one.parameters()]) == len([*model.parameters()])
