"""Engine ``module``: the user's trained `torch.nn.Module` by import path, with weights from a file without code.

If its outputs are random, e.g. with dropout left on, an attacker queries it repeatedly and averages: ``draws``.
"""

import warnings
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, brief
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines.answers import Answers, trained_on
from dp_leakage.engines.onnx import ROWS, check_same, log_classes
from dp_leakage.models.user_module import module_factory

OWN = ("name", "weights", "draws")  # keys of the architecture that are no arguments of the class
AT_RANDOM = "a model without random numbers, or with draws, of how many answers the attacker takes the mean"


def answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    """Return the module's outputs on the unchanged records. It was trained on the only subset.

    With ``draws`` they are the mean probabilities of that many queries, drawn by the first seed.

    Args:
        settings: of step ``train``; the architecture is ``name``, ``module:Class``, ``weights``, a ``.safetensors`` or
            a state dict that PyTorch loads with ``weights_only``, ``draws``, and the class's own arguments.
        data: the records.
        subsets: the records that it was trained on.
        seeds: the first one draws the outputs.

    Raises:
        UserError: the module does not exist, the weights or the records do not fit it, or outputs vary and ``draws`` is
            1.
    """
    architecture = settings["architecture"]
    arguments = {key: value for key, value in architecture.items() if key not in OWN}
    where, draws = architecture["name"], architecture.get("draws", 1)
    if type(draws) is not int or draws < 1:
        raise UserError(f"key 'draws' of {where} is {draws!r}; expected the number of answers to average, at least 1")
    module = module_factory(where, data.x.shape[1:], data.n_classes, **arguments)()
    path = user_path(architecture["weights"])
    try:
        module.load_state_dict(_weights(path))
    except (RuntimeError, TypeError, AttributeError) as error:
        raise UserError(f"{path} does not fit {where}: {_words(error)}") from None
    module.eval()
    torch.manual_seed(seeds[0])
    x = torch.from_numpy(data.x)
    first = _asked(module, x, where)
    said = log_classes(first, data.n_classes, where)
    if draws == 1:
        check_same(first[:ROWS], _asked(module, x[:ROWS], where), where, AT_RANDOM)
    for _ in range(draws - 1):
        said = np.logaddexp(said, log_classes(_asked(module, x, where), data.n_classes, where))
    return Answers.of(trained_on(data, subsets[:1]), said[None] - np.log(draws), data.y)


def _asked(module: torch.nn.Module, x: torch.Tensor, where: str) -> np.ndarray:
    """Return one answer about each record (n, …), float64 (n, C)."""
    try:
        with torch.no_grad():
            return np.concatenate([module(part).double().numpy() for part in x.split(ROWS)])
    except Exception as error:  # a user's module can raise anything
        raise UserError(f"{where} cannot be queried about the records: {_words(error)}") from None


def _weights(path: Path) -> dict[str, torch.Tensor]:
    if not is_file(path):
        raise UserError(f"{path}: no such file; expected weights as .safetensors or a state dict (.pt)")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on how a file was made, before it is refused
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:  # the library's words advise to run the file's code
        valid = "torch.save(model.state_dict(), …), or a .safetensors"
        raise UserError(f"{path} holds Python objects, which are never loaded; expected {valid}") from None
    except Exception as error:
        raise UserError(f"{path} cannot be read as weights without running code ({_words(error)})") from None


def _words(error: Exception) -> str:
    return brief(error) or type(error).__name__
