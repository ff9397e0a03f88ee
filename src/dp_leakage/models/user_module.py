"""The user's models: any `torch.nn.Module`, named by its import path, as an architecture of a single layer."""

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints

import torch
from torch import Tensor, nn

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.user_code import blamed, module_file
from dp_leakage.models.layers import Layers
from dp_leakage.models.layers.torch_module import Factory, TorchModule


def module_layers(factory: Factory, input_shape: tuple[int, ...], n_classes: int) -> Layers:
    """Return the user's module as an architecture.

    Args:
        factory: makes the module, see `module_factory`.
        input_shape: of one record.
        n_classes: number of logits.

    Raises:
        UserError: the module has nothing to train.
    """
    layer = TorchModule(factory, tuple(input_shape), n_classes)
    if not layer.parameter_shapes():
        raise UserError(f"{layer.title} has no parameters that require a gradient, so it cannot be trained")
    for name, own in layer.workplace.named_parameters():
        if not own.is_floating_point():
            raise UserError(f"{layer.title}: parameter '{name}' is {own.dtype}; expected floating-point numbers")
    return (layer,)


def module_factory(path: str, input_shape: tuple[int, ...], n_classes: int, **settings: object) -> Factory:
    """Return a function that creates a new instance of the user's module, with random parameters.

    Args:
        path: ``package.module:name`` of a class or function that returns a `torch.nn.Module`.
        input_shape: of one record; handed over by name if the callable takes ``input_shape``.
        n_classes: number of logits; handed over by name if the callable takes ``n_classes``.
        settings: further keyword arguments.

    Raises:
        UserError: nothing is found there, or it does not take these arguments.
    """
    make = _found(path)
    where = f"module {path!r}"
    file = module_file(path.partition(":")[0])
    with blamed(where, file):
        signature = inspect.signature(make)
    given = {"input_shape": tuple(input_shape), "n_classes": n_classes}
    arguments = {key: value for key, value in given.items() if key in signature.parameters} | settings
    try:
        signature.bind(**arguments)
    except TypeError as error:
        raise UserError(f"{where} does not take these settings: {error}") from error

    def factory() -> nn.Module:
        with blamed(where, file):
            module = make(**arguments)
        if not isinstance(module, nn.Module):
            raise UserError(f"{where} gives {type(module).__name__}; expected a torch.nn.Module")
        return module

    _check_outputs(factory, input_shape, n_classes, where, file)
    return factory


def _found(path: str) -> Callable[..., nn.Module]:
    """Return the class or function of an import path. Only callables that create modules are ever called."""
    package, _, name = path.partition(":")
    if not package or not name:
        raise UserError(f"module {path!r} must be an import path such as 'my_models.nets:Net'")
    if package.partition(".")[0] in sys.stdlib_module_names:
        raise UserError(f"module {path!r} belongs to Python's standard library, which has no models")
    try:
        with blamed(f"module {path!r}", module_file(package)):
            found = vars(importlib.import_module(package))
    except UserError as error:
        if not isinstance(error.__cause__, ImportError):
            raise
        words = f"cannot be imported: {error.__cause__}; is its folder among plugins or on PYTHONPATH?"
        raise UserError(f"module {path!r} {words}") from error
    if name not in found:
        raise UserError(f"module {path!r}: {package} has no {name!r}; {nearest(name, found)}")
    make = found[name]
    if not (isinstance(make, type) and issubclass(make, nn.Module)) and not _returns_module(make):
        words = f"expected such classes, and functions that say so: def {name}(…) -> torch.nn.Module"
        raise UserError(f"module {path!r} is not a torch.nn.Module; {words}")
    return make


def _returns_module(make: object) -> bool:
    """Return whether it is a plain function annotated to return a module."""
    if not inspect.isfunction(make):
        return False
    try:
        returned = get_type_hints(make).get("return")
    except Exception:  # an annotation can name anything
        return False
    return isinstance(returned, type) and issubclass(returned, nn.Module)


@torch.no_grad()
def _check_outputs(
    factory: Factory, input_shape: tuple[int, ...], n_classes: int, where: str, file: Path | None
) -> None:
    """Check that a module returns one number for each record and class. Restores the random streams."""
    with torch.random.fork_rng(devices=[]), blamed(where, file):
        out = factory().eval()(torch.zeros(2, *input_shape))
    if not isinstance(out, Tensor) or out.shape != (2, n_classes) or not out.is_floating_point():
        shown = f"{tuple(out.shape)} {out.dtype}" if isinstance(out, Tensor) else type(out).__name__
        raise UserError(f"{where} gives {shown} for 2 records of shape {tuple(input_shape)}; expected (2, {n_classes})")
