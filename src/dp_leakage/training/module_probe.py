"""Tests of a user's module before a private training, for properties that noise relies on.

A record may affect only its own per-example gradient. So in train mode, with equal random streams, a change of record j
must leave all other records' outputs and gradients unchanged, bit by bit. Only the optimizer may write a parameter or a
buffer, since no noise protects a write by the forward pass. The test records are random, never the data, so that the
result reveals nothing. The test misses a module that misbehaves only on other inputs.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice, product
from types import FunctionType
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import Layers, Parameters, forward
from dp_leakage.models.layers.torch_module import TorchModule, tensors_of

SMALL = (1, 2, 3)  # batch sizes, besides the training's
NEAR = 1e-3  # relative rounding between batches of different lengths
# Records of these kinds. A module that takes categories as numbers fails on the first, one for pixels may on others.
KINDS: tuple[Callable[[tuple[int, ...]], Tensor], ...] = (torch.randn, lambda shape: torch.randint(2, shape))
# What record j is exchanged for. A mixing that is too weak to see shows with huge numbers, and 0·∞ is NaN.
OTHERS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda record: 1 - record,
    lambda record: 1e4 * (1 + record),
    lambda record: torch.full_like(record, torch.finfo(record.dtype).max),
)
# What Opacus' hooks and the training itself keep in a module.
BOOKKEEPING = ("training", "max_batch_len", "activations", "autograd_grad_sample_hooks", "grad_sample_hooks")
MOST_ITEMS = 64  # of a collection that are compared one by one
STEPS = 8  # passes of one batch, which must not tell whether they are early or late


DROPPING = {
    getattr(functional, f"{kind}dropout{n}")
    for kind, n in (
        ("", ""),
        ("", "1d"),
        ("", "2d"),
        ("", "3d"),
        ("alpha_", ""),
        ("feature_alpha_", ""),
    )
} | {torch.dropout, torch.feature_dropout, torch.alpha_dropout, torch.feature_alpha_dropout}
DRAWING = {
    torch.rand,
    torch.randn,
    torch.rand_like,
    torch.randn_like,
    torch.normal,
    torch.bernoulli,
    Tensor.bernoulli,
    Tensor.bernoulli_,
    Tensor.normal_,
    Tensor.uniform_,
    Tensor.exponential_,
    Tensor.log_normal_,
    Tensor.cauchy_,
}


def check_foreign(layers: Layers, batch_size: int, dtype: torch.dtype) -> None:
    """Run `check_module` for each user's module among the layers."""
    for layer in layers:
        if isinstance(layer, TorchModule):
            check_module(layer, batch_size, dtype)


def check_module(layer: TorchModule, batch_size: int, dtype: torch.dtype = torch.float32) -> None:
    """Refuse a module that mixes records, or whose forward pass writes released values.

    Args:
        layer: the module.
        batch_size: of the training, ≥ 1.
        dtype: of the training.

    Raises:
        UserError: as above, or Opacus cannot form its per-example gradients.
    """
    where = f"{layer.title} cannot be trained privately"
    try:
        layer.hooks.enable_hooks()
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
        torch.manual_seed(0)
        start = layer.initial(Generator().manual_seed(0), "torch")
        model = {f"0.{name}": own[None].to(dtype if own.is_floating_point() else None) for name, own in start.items()}
        drawing = [draw for kind in KINDS if _takes(layer, model, draw := _drawing(kind, layer.inputs, dtype))]
        if not drawing:
            raise UserError(
                f"{where}: it fails on random records of shape {layer.inputs}, so that it cannot be checked"
            )
        # As it begins, and moved: a factor that begins at zero hides what it multiplies.
        for moved in (0.0, 0.1):
            for name in layer.parameter_shapes():
                model[f"0.{name}"] += moved * torch.randn_like(model[f"0.{name}"])
            for draw, count in product(drawing, SMALL):
                _check_batch(layer, model, draw(count), OTHERS, where)
                if count > 1:
                    _check_removal(layer, model, draw(count), where)
        batch = drawing[0](2)
        for _ in range(STEPS):
            _check_batch(layer, model, batch, OTHERS[:1], where)
        _check_batch(layer, model, drawing[0](batch_size), OTHERS[1:2], where)  # briefly, as this is most of the time


def _drawing(
    kind: Callable[[tuple[int, ...]], Tensor], shape: tuple[int, ...], dtype: torch.dtype
) -> Callable[[int], Tensor]:
    return lambda count: kind((count, *shape)).to(dtype)


def _takes(layer: TorchModule, model: Parameters, draw: Callable[[int], Tensor]) -> bool:
    """Return whether the module accepts records of this type."""
    try:
        _passed(layer, model, draw(2))
    except UserError:  # it can, but is to be refused
        return True
    except Exception:  # anything, as it is the user's code
        return False
    return True


def _check_batch(
    layer: TorchModule, model: Parameters, x: Tensor, exchanged: Sequence[Callable[[Tensor], Tensor]], where: str
) -> None:
    """Check that exchanging the first and the last record leaves everything else unchanged."""
    count = len(x)
    before = {name: value.clone() for name, value in model.items()}
    try:
        first = _passed(layer, model, x)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    except Exception as error:
        raise UserError(f"{where}: it fails on a batch of {count} records, which sampling can draw: {error}") from error
    names = ["its output", *(f"the gradient of parameter '{name}'" for name in layer.parameter_shapes())]
    kept = _state(layer.workplace)
    again = _passed(layer, model, x)
    _check_kept(layer, kept, where)
    if not all(map(_same, first, again)):
        raise UserError(
            f"{where}: a second pass of the same batch gives other numbers; it must store nothing of earlier "
            "batches, and draw random numbers from PyTorch's stream only"
        )
    for row in sorted({0, count - 1}):
        for other in exchanged:
            changed = x.clone()
            changed[row] = other(x[row])
            try:
                again = _passed(layer, model, changed)
            except Exception:  # it takes no such record
                continue
            others = torch.arange(count) != row
            for name, old, new in zip(names, first, again, strict=True):
                if not _same(old[others], new[others]):
                    raise UserError(
                        f"{where}: {name} for one record depends on the other records of its batch; normalize "
                        "each record by itself, as nn.GroupNorm and nn.LayerNorm do"
                    )
    _check_kept(layer, kept, where)
    parameters = dict(layer.workplace.named_parameters())
    for name, value in tensors_of(layer.workplace):
        if not _same(before[f"0.{name}"][0], value.detach()):
            what = "parameter" if name in parameters else "buffer"
            raise UserError(
                f"{where}: its forward pass changes the {what} '{name}', which no noise protects; remove that, for "
                "example by track_running_stats=False"
            )


def _check_kept(layer: TorchModule, before: dict[str, Any], where: str) -> None:
    """Refuse a module whose Python state changes with passes, of the same batch or of others."""
    if (changed := _changed(before, _state(layer.workplace))) is not None:
        raise UserError(
            f"{where}: each forward pass changes its attribute '{changed}', which can carry records on; it must "
            "store nothing of earlier batches"
        )


def _state(module: nn.Module) -> dict[str, Any]:
    """Return attribute → summary for all Python state of a module and its parts, except tensors known to PyTorch and
    hooks.
    """
    return {
        f"{part}.{name}".lstrip("."): _summary(value)
        for part, own in module.named_modules()
        for name, value in vars(own).items()
        if not name.startswith("_") or name not in vars(nn.Module())
        if name not in BOOKKEEPING
    }


def _summary(value: object, depth: int = 3) -> Any:
    """Return a comparable summary of a Python value: numbers, texts, sizes and contents of collections, a few levels
    deep.
    """
    match value:
        case Tensor():
            return tuple(value.shape), value._version, id(value)
        case bool() | int() | float() | complex() | str() | bytes() | None:
            return value
        case dict() | list() | tuple() | set() | deque():
            items = value.items() if isinstance(value, dict) else value
            return len(value), [_summary(one, depth - 1) for one in islice(items, MOST_ITEMS)] if depth else []
        case nn.Module() | FunctionType():
            return None
        case _:
            return (
                [_summary(one, depth - 1) for one in vars(value).values()]
                if depth and hasattr(value, "__dict__")
                else None
            )


def _changed(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return the first attribute that is new or different, or None."""
    return next((name for name, value in after.items() if name not in before or before[name] != value), None)


def _check_removal(layer: TorchModule, model: Parameters, x: Tensor, where: str) -> None:
    """Check that removing the first record leaves the others' gradients unchanged up to rounding. Skipped if the module
    still draws random numbers.
    """
    with _WithoutDraws():
        whole, drawn_anew = _passed(layer, model, x), _passed(layer, model, x, seed=1)
        others = torch.arange(len(x)) > 0
        part = _passed(layer, model, x[others], torch.arange(len(x))[others])
    if not all(map(_same, whole, drawn_anew)):
        return  # fewer records shift the masks, so that nothing could be compared
    largest = max(float(own.nan_to_num().abs().max()) for own in part if own.numel())
    for old, new in zip(whole, part, strict=True):
        if not torch.allclose(old[others], new, rtol=NEAR, atol=NEAR * largest, equal_nan=True):
            raise UserError(
                f"{where}: the gradient of one record depends on the number of other records in its batch; it may "
                "depend on the record alone"
            )


class _WithoutDraws(TorchFunctionMode):
    """Keeps PyTorch's functions from drawing: dropout does nothing, and every drawn number is 1."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in DROPPING:
            return args[0] if args else kwargs["input"]
        if func is functional.scaled_dot_product_attention:
            kwargs = kwargs | {"dropout_p": 0.0} if len(args) < 5 else kwargs
        made = func(*args, **kwargs)
        return made.fill_(1) if func in DRAWING else made


def _passed(
    layer: TorchModule, model: Parameters, x: Tensor, places: Tensor | None = None, seed: int = 0
) -> list[Tensor]:
    """Return the outputs and the per-example gradients of one step, with classes given by the records' indices."""
    y = (torch.arange(len(x)) if places is None else places) % layer.outputs
    logits, kept = forward((layer,), model, x[None], [Generator().manual_seed(seed)])
    delta = logits.softmax(2) - torch.nn.functional.one_hot(y[None], layer.outputs)
    parts = layer.gradients("0", model, kept[0], delta)
    return [logits[0], *(own[0] for part in parts for own in part.formed.formed)]


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
