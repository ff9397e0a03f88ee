"""What the noise of engine ``opacus`` relies on, tried on a module before its training.

A record may move only its own per-example gradient. So in train mode, with equal random streams, a change of record j
must leave all other records' outputs and gradients as they are, bit by bit. Nothing but the optimizer may write a
parameter or a buffer, since no noise protects what a forward pass writes. The records tried are random, never the data,
so that the answer reveals nothing. A module that behaves badly only on inputs of a kind not tried here passes.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dp_leakage.common.errors import UserError

if TYPE_CHECKING:
    from opacus import GradSampleModule

SMALL = (1, 2, 3)  # batch sizes, besides the training's
NEAR = 1e-3  # relative rounding between batches of different lengths
# Records of these kinds. A module that takes categories as numbers fails on the first, one for pixels may on others.
KINDS: tuple[Callable[[tuple[int, ...]], Tensor], ...] = (torch.randn, lambda shape: torch.randint(2, shape))
# What record j is exchanged for. A mixing that is too weak to see shows with huge numbers, and 0·∞ is NaN.
OTHERS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda record: 1 - record,
    lambda record: 1e4 * (1 + record),
    lambda record: torch.full_like(record, 3e38),
)


def check_module(
    factory: Callable[[], nn.Module], shape: tuple[int, ...], batch_size: int, dtype: torch.dtype = torch.float32
) -> None:
    """Refuses a module whose records do not stay apart, or whose forward pass writes what is released.

    Args:
        factory: makes the module; its global random streams are put back.
        shape: of one record.
        batch_size: of the training, ≥ 1.
        dtype: of the training.

    Raises:
        UserError: as above, or Opacus does not know one of its layers.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = wrapped(factory().to(dtype=dtype).train())
        where = f"engine 'opacus' cannot train {type(module._module).__name__} privately"
        drawing = [draw for kind in KINDS if _takes(module, draw := _drawing(kind, shape, dtype))]
        if not drawing:
            raise UserError(f"{where}: it fails on random records of shape {shape}, so that it cannot be checked")
        # As it begins, and moved: a factor that begins at zero hides what it multiplies.
        for moved in (0.0, 0.1):
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.add_(moved * torch.randn_like(parameter))
            for draw, count in product(drawing, SMALL):
                _check_batch(module, draw(count), OTHERS, where)
                if count > 1:
                    _check_removal(module, draw(count), where)
        _check_batch(module, drawing[0](batch_size), OTHERS[1:2], where)  # briefly, as this is most of the time


def wrapped(module: nn.Module) -> "GradSampleModule":
    """The module with Opacus' hooks. Raises UserError if Opacus does not know one of its layers."""
    from opacus import GradSampleModule
    from opacus.validators import ModuleValidator

    problems = ModuleValidator.validate(module, strict=False)
    try:
        if not problems:
            return GradSampleModule(module)
    except NotImplementedError as error:
        problems = [error]
    raise UserError(f"engine 'opacus' cannot train {type(module).__name__} privately: {problems[0]}")


def per_example(parameters: list[nn.Parameter], count: int) -> list[Tensor]:
    """The gradients that Opacus' hooks left, (count, …) each, and zeros where a parameter had no part in the loss."""
    found = []
    for parameter in parameters:
        own = getattr(parameter, "grad_sample", None)
        if own is None:
            own = parameter.new_zeros(count, *parameter.shape)
        found.append(torch.cat(own) if isinstance(own, list) else own)
    return found


def _drawing(
    kind: Callable[[tuple[int, ...]], Tensor], shape: tuple[int, ...], dtype: torch.dtype
) -> Callable[[int], Tensor]:
    return lambda count: kind((count, *shape)).to(dtype)


def _takes(module: "GradSampleModule", draw: Callable[[int], Tensor]) -> bool:
    """Whether the module can do anything with records of this kind."""
    try:
        _passed(module, draw(2))
    except Exception:  # anything, as it is the user's code
        return False
    return True


def _check_batch(
    module: "GradSampleModule", x: Tensor, exchanged: Sequence[Callable[[Tensor], Tensor]], where: str
) -> None:
    """The first and the last record, exchanged for others, leave everything else as it is."""
    count = len(x)
    before = {name: value.clone() for name, value in _state(module)}
    try:
        first = _passed(module, x)
    except Exception as error:
        raise UserError(f"{where}: it fails on a batch of {count}, as may be drawn: {error}") from error
    names = ["its output", *(f"the gradient of parameter '{name}'" for name, _ in _trained(module))]
    for name, found in zip(names, first, strict=True):
        if len(found) != count:
            raise UserError(f"{where}: {name} has {len(found)} rows for a batch of {count}; keep records on axis 0")
    if not all(map(_same, first, _passed(module, x))):
        raise UserError(
            f"{where}: a second pass of the same batch gives other numbers; it must keep nothing of earlier "
            "batches, and draw random numbers from PyTorch's stream only"
        )
    for row in sorted({0, count - 1}):
        for other in exchanged:
            changed = x.clone()
            changed[row] = other(x[row])
            try:
                again = _passed(module, changed)
            except Exception:  # it takes no such record
                continue
            others = torch.arange(count) != row
            for name, old, new in zip(names, first, again, strict=True):
                if not _same(old[others], new[others]):
                    raise UserError(
                        f"{where}: {name} for one record depends on the other records of its batch; normalize "
                        "each record by itself, as nn.GroupNorm and nn.LayerNorm do"
                    )
    for name, value in _state(module):
        if not _same(before[name], value):
            what = "parameter" if name in dict(module._module.named_parameters()) else "buffer"
            raise UserError(
                f"{where}: its forward pass changes the {what} '{name}', which no noise protects; remove that, for "
                "example by track_running_stats=False"
            )


def _check_removal(module: "GradSampleModule", x: Tensor, where: str) -> None:
    """Without the first record, the others' gradients are the same up to rounding. Skipped if the module draws."""
    dropouts = [own for own in module.modules() if isinstance(own, nn.modules.dropout._DropoutNd)]
    for own in dropouts:
        own.eval()
    whole, drawn_anew = _passed(module, x), _passed(module, x, seed=1)
    others = torch.arange(len(x)) > 0
    part = _passed(module, x[others], torch.arange(len(x))[others])
    for own in dropouts:
        own.train()
    if not all(map(_same, whole, drawn_anew)):
        return  # fewer records shift the masks, so that nothing could be compared
    largest = max(float(own.nan_to_num().abs().max()) for own in part if own.numel())
    for old, new in zip(whole, part, strict=True):
        if not torch.allclose(old[others], new, rtol=NEAR, atol=NEAR * largest, equal_nan=True):
            raise UserError(
                f"{where}: the gradient of one record depends on how many others are in its batch; nothing but the "
                "record itself may enter"
            )


def _passed(module: "GradSampleModule", x: Tensor, places: Tensor | None = None, seed: int = 0) -> list[Tensor]:
    """The outputs and the per-example gradients of one step, whose classes are those of the records' places."""
    torch.manual_seed(seed)
    parameters = [parameter for _, parameter in _trained(module)]
    for parameter in parameters:
        parameter.grad, parameter.grad_sample = None, None
        # What Opacus' hooks keep of a pass that failed.
        parameter._forward_counter = 0
        vars(parameter).pop("_current_grad_sample", None)
    for own in module.modules():
        vars(own).pop("max_batch_len", None)
        vars(own).get("activations", []).clear()
    logits = module(x)
    places = torch.arange(len(x)) if places is None else places
    F.cross_entropy(logits, places % logits.shape[1]).backward()
    return [logits.detach(), *per_example(parameters, len(x))]


def _trained(module: "GradSampleModule") -> list[tuple[str, nn.Parameter]]:
    return [(name, own) for name, own in module._module.named_parameters() if own.requires_grad]


def _state(module: "GradSampleModule") -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers, also those that ``state_dict`` leaves out."""
    for name, value in (*module._module.named_parameters(), *module._module.named_buffers()):
        yield name, value.detach()


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
