"""Bounds on singular values: of recurrent matrices and convolutions by projection, of recurrent ones by reflections.

In a loop of one's own:

    project = enn.SpectralBound(model, delta=0.2)
    for each step:
        optimiser.step()
        project()
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from elman.config.parts import convert
from elman.learning import constraint
from elman.network.cells.cell import Cell
from elman.network.cells.elman import Elman
from elman.network.cells.gru import GRU
from elman.network.cells.lstm import LSTM
from elman.network.cores.layer import Layer
from elman.network.cores.stack import StackCore, candidate_hidden, linearised
from elman.network.spectrum import spectral_norm, spectral_radius
from elman.nn.recurrent import Recurrent
from elman.nn.shared import record_of

Method = Literal["subspace", "eigh", "svd"]
Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


class SpectralBound:
    """Projects recurrent matrices onto sigma_1 <= 2 - delta, the nearest such matrices, after steps of any optimiser.

    W_hh of the candidate state is bounded: n of a GRU, g of an LSTM, all of an Elman network. A GRU without biases and
    inputs then forgets: its Jacobian at h = 0, W_hh / 4 + I / 2, has a spectral radius below 1 (Kanai, Fujiwara &
    Iwamura 2017; Kanai's thesis, chapter 3).

    Args:
        module: a model or a part of it; its `GRU`, `LSTM` and `Elman` of `elman.nn` and `torch.nn.GRU`, `LSTM`, `RNN`,
            `GRUCell`, `LSTMCell` and `RNNCell` are constrained: the parameters that they have now, as for an optimiser
        delta: above 0 and below 2; for gated cells
        bound: of sigma_1 in the place of 2 - delta; for an Elman network below 1
        inputs: sigma_1(W_xh) <= 2 as well (thesis 3.11)
        method: "subspace" follows the largest singular values from step to step, at the cost of a few thin products and
            with a proof at every call; "eigh" and "svd" compute all of them

    Raises ValueError where there is nothing to constrain, a cell has other dynamics, weights have 16 bits, or a number
    is out of its range.
    """

    def __init__(
        self,
        module: nn.Module,
        delta: float = 0.2,
        *,
        bound: float | None = None,
        inputs: bool = False,
        method: Method = "subspace",
    ) -> None:
        self._layers = layers_within(module)
        if not self._layers:
            raise ValueError(f"{type(module).__name__} has no recurrent matrix of a GRU, an LSTM or an Elman network")
        kinds = {layer.cell.name for layer in self._layers.values()}
        if bound is None and "elman" in kinds:
            raise ValueError("2 - delta is a bound for gated cells; give an Elman network `bound`, such as 0.95")
        keys = {"kind": "spectral", "delta": delta, "bound": bound, "input": inputs, "method": method}
        record = record_of(keys, constraint.Spectral, "SpectralBound")
        self._constrained = constraint.ConstrainedCore(StackCore([*self._layers.values()]), record)

    def __call__(self) -> None:
        """Project; matrices with infinities or nan are left as they are."""
        self._constrained.project()

    @torch.no_grad()
    def norms(self) -> dict[str, float]:
        """sigma_1 of each W_hh, by the name of the weights that hold it."""
        return {name: spectral_norm(candidate_hidden(layer)).item() for name, layer in self._layers.items()}

    @torch.no_grad()
    def radii(self) -> dict[str, float]:
        """The spectral radius of the Jacobian at h = 0 without inputs and biases (thesis 3.10); below 1: it forgets."""
        return {name: spectral_radius(linearised(layer)) for name, layer in self._layers.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """What is followed from step to step, as tensors by name."""
        return self._constrained.tensors()

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `state_dict` returned, bit for bit."""
        self._constrained.restore(tensors)


def layers_within(module: nn.Module) -> dict[str, Layer]:
    """The recurrent layers of a module, by the names of their `weight_hh`, as layers that share its weights."""
    found = {}
    for place, part in module.named_modules():
        if (cell := cell_of(part)) is None:
            continue
        where = place or type(part).__name__
        if getattr(part, "proj_size", 0) or nn.utils.parametrize.is_parametrized(part):
            raise ValueError(f"{where}: weights that are projected or parametrised cannot be bounded")
        if cell.name not in constraint.CELLS:
            raise ValueError(f"{where}: its recurrent matrix alone does not determine the dynamics of {cell.name}")
        for name, hidden in part.named_parameters(recurse=False):
            if not name.startswith("weight_hh"):
                continue
            if hidden.dtype.itemsize == 2:
                raise ValueError(f"{where}: weights of {hidden.dtype} are rounded beyond a bound; use torch.float32")
            of_input = part.get_parameter(name.replace("weight_hh", "weight_ih"))
            with torch.device("meta"):
                layer = Layer(cell, of_input.shape[1], hidden.shape[1], biases=0)
            layer.weight_ih, layer.weight_hh = of_input, hidden
            found[f"{place}.{name}".removeprefix(".")] = layer
    return found


def cell_of(part: nn.Module) -> Cell | None:
    """The equations of a recurrent module; None for others."""
    match part:
        case Recurrent():
            return part.cell
        case nn.GRU() | nn.GRUCell():
            return GRU()
        case nn.LSTM() | nn.LSTMCell():
            return LSTM()
        case nn.RNN() | nn.RNNCell():
            return convert({"kind": "elman", "nonlinearity": part.nonlinearity}, Elman)
        case _:
            return None


class ConvolutionBound:
    """Keeps sigma_1 of convolutions, as maps of whole images, at a bound or below, after steps of any optimiser.

    On a torus of N places a convolution is block diagonal in the Fourier basis, and its singular values are the
    singular values of the matrices sum_a K[:, :, a] exp(-2 pi i w a / N) at all frequencies w (Sedghi, Gupta & Long
    2019, The singular values of convolutional layers, ICLR, theorem 6; there on images): exact for circular padding.
    With zeros an image is a part of a larger torus, of as many more places as the kernel spans beyond one: a bound from
    above. Strides leave out rows of the map, and do not raise it.

    Singular values are cut at the bound and the kernel at its support, as there; as that is not yet inside, the kernel
    is then scaled down to the bound.

    Args:
        module: a model or a part of it; its `torch.nn.Conv1d`, `Conv2d` and `Conv3d` are constrained
        size: of the images that they read, without batch and channels; one number for all axes
        bound: of sigma_1

    Raises ValueError where there is no convolution, or one has other padding, or a kernel that exceeds the image.
    """

    def __init__(self, module: nn.Module, size: int | Sequence[int], *, bound: float = 1.0) -> None:
        if not bound > 0:
            raise ValueError(f"bound is {bound}; it must be above 0")
        parts = {name or type(part).__name__: part for name, part in module.named_modules()}
        self._layers = {name: part for name, part in parts.items() if isinstance(part, Convolution)}
        if not self._layers:
            raise ValueError(f"{type(module).__name__} has no convolution")
        self._bound, self._torus = bound, {name: _torus(name, part, size) for name, part in self._layers.items()}

    @torch.no_grad()
    def __call__(self) -> None:
        """Project; kernels with infinities or nan are left as they are."""
        for name, layer in self._layers.items():
            matrices = self._matrices(name)
            if not matrices.isfinite().all():
                continue
            u, values, vh = torch.linalg.svd(matrices, full_matrices=False)
            if values.max() <= self._bound:
                continue
            torus, taps = self._torus[name]
            found = ((u * values.clamp(max=self._bound).unsqueeze(-2)) @ vh).movedim((-2, -1), (1, 2))
            layer.weight.copy_(torch.fft.irfftn(found, torus)[taps].flatten(0, 1))
            layer.weight.mul_(min(1.0, self._bound / torch.linalg.svdvals(self._matrices(name)).max().item()))

    @torch.no_grad()
    def norms(self) -> dict[str, float]:
        """Sigma_1, or its bound from above, of each convolution by its name; NaN where a weight is not finite."""
        found = {name: self._matrices(name) for name in self._layers}
        known = {name: torch.linalg.svdvals(each).max() for name, each in found.items() if each.isfinite().all()}
        return {name: float(known.get(name, torch.nan)) for name in found}

    def _matrices(self, name: str) -> Tensor:
        """The matrices [groups, frequencies, O, I] of a kernel; the others are their conjugates."""
        layer, (torus, taps) = self._layers[name], self._torus[name]
        kernel = layer.weight.unflatten(0, (layer.groups, -1))
        spread = torch.zeros(*kernel.shape[:3], *torus, dtype=torch.float64, device=kernel.device)
        spread[taps] = kernel.double()
        return torch.fft.rfftn(spread, torus).movedim((1, 2), (-2, -1))


def _torus(name: str, layer: Convolution, size: int | Sequence[int]) -> tuple[list[int], tuple[slice, ...]]:
    """The places of each axis, and where a kernel [groups, O, I, taps] stands there."""
    axes = len(layer.kernel_size)
    sizes = (size,) * axes if isinstance(size, int) else tuple(size)
    if len(sizes) != axes:
        raise ValueError(f"{name}: its images have {axes} axes, and size has {len(sizes)}")
    circular = layer.padding_mode == "circular"
    torus, kernel = [], [slice(None)] * 3
    for axis, (places, taps, apart) in enumerate(zip(sizes, layer.kernel_size, layer.dilation, strict=True)):
        span, padding = apart * (taps - 1), layer.padding
        added = {"same": span, "valid": 0}[padding] if isinstance(padding, str) else 2 * padding[axis]
        if layer.padding_mode not in ("zeros", "circular") or (circular and added > span):
            raise ValueError(f"{name}: padding by {padding}, {layer.padding_mode}, has no such bound")
        if span >= places:
            raise ValueError(f"{name}: the kernel spans {span + 1} places, and the image has {places}")
        torus.append(places if circular else places + span)
        kernel.append(slice(0, span + 1, apart))
    return torus, tuple(kernel)


class _SVD(nn.Module):
    """The parametrisation of `svd_weight`; all arrays have one entry for each of the blocks of a stacked matrix."""

    def __init__(self, radius: float, reflections: int) -> None:
        super().__init__()
        self.radius, self.reflections = radius, reflections

    def forward(self, u: Tensor, values: Tensor, v: Tensor) -> Tensor:
        dtype = values.dtype
        u, values, v = (one.to(torch.promote_types(dtype, torch.float32)) for one in (u, values, v))
        sigma = 1 + 2 * self.radius * (values.sigmoid() - 0.5)
        return ((reflected(u) * sigma.unsqueeze(-2)) @ reflected(v).mT).flatten(0, 1).to(dtype)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, sigma, vh = torch.linalg.svd(weight.detach().double().unflatten(0, (-1, weight.shape[1])))
        share = ((sigma - 1) / (2 * self.radius) + 0.5).clamp(0.05, 0.95)
        found = (reflections_of(u), share.logit(), reflections_of(vh.mT))
        u, values, v = (one.to(weight.dtype) for one in found)
        return u[..., : self.reflections].contiguous(), values, v[..., : self.reflections].contiguous()


def svd_weight(
    module: nn.Module, name: str = "weight_hh_l0", radius: float = 0.1, reflections: int | None = None
) -> nn.Module:
    """Recurrent weights as W = U S V^T, with singular values that stay within 1 - radius and 1 + radius.

    U and V are products of Householder reflections H_n(u_n) ... H_k(u_k), of which H_k(u) leaves the first n - k
    coordinates and reflects the others by I - 2 u u^T / |u|^2, and S = 1 + 2 radius (sigm(s) - 1/2) (Zhang, Lei &
    Dhillon 2018, Stabilizing gradients for deep neural networks via efficient SVD parameterization, ICML, sections 3
    and 4). Nothing has to be projected. The reflections of a side are multiplied at once.

    A matrix of gates [G n, n] has its n x n blocks parametrised one by one. What the module has, or is given by
    assignment, keeps its singular vectors; values are moved to within 0.9 radius of 1.

    Args:
        module: with the matrix as a parameter, such as `elman.nn.Elman`, `torch.nn.RNN` or `torch.nn.RNNCell`
        name: of the parameter
        radius: above 0 and at most 1
        reflections: for each side, the first n - k + 1; None: n, by which every orthogonal matrix can be reached

    Returns:
        The module, parametrised as by `torch.nn.utils.parametrizations.orthogonal`.

    Raises ValueError where an argument is out of its range.
    """
    rows, n = getattr(module, name).shape
    most = n if reflections is None else reflections
    if rows % n or not 0 < radius <= 1 or not 1 <= most <= n:
        raise ValueError(
            f"{name} is {rows} x {n}, radius {radius} and reflections {most}; the rows are a multiple of the columns,"
            " the radius is above 0 and at most 1, and there are 1 to n reflections"
        )
    parametrize.register_parametrization(module, name, _SVD(radius, most))
    return module


def reflected(vectors: Tensor) -> Tensor:
    """The product of reflections along the columns of Y = tril(vectors) [..., n, m], the first one on the left.

    H_1 ... H_m = I - Y T^-1 Y^T, T the upper triangle of Y^T Y with half of its diagonal (Joffrain, Low, Quintana-Orti,
    van de Geijn & Van Zee 2006, ACM Trans. Mathematical Software 32). A column of zeros reflects nothing.
    """
    y = vectors.tril()
    products = y.mT @ y
    half = products.diagonal(dim1=-2, dim2=-1) / 2
    t = products.triu(1) + torch.where(half > 0, half, 1.0).diag_embed()
    return torch.eye(y.shape[-2], dtype=y.dtype, device=y.device) - y @ torch.linalg.solve_triangular(
        t, y.mT, upper=True
    )


def reflections_of(orthogonal: Tensor) -> Tensor:
    """Vectors [..., n, n] whose `reflected` is an orthogonal matrix [..., n, n]."""
    rest, found = orthogonal.clone(), torch.zeros_like(orthogonal)
    for k in range(rest.shape[-1]):
        y = found[..., k]
        y[..., k:] = rest[..., k:, k]
        y[..., k] -= 1
        y[y.norm(dim=-1) < 1e-8] = 0
        scale = 2 / y.square().sum(-1, keepdim=True).clamp(min=1e-30)
        rest = rest - (scale * y).unsqueeze(-1) * (y.unsqueeze(-2) @ rest)
    return found
