"""Engine ``module``: the user's trained `torch.nn.Module` by import path, with its weights from a file without code."""

import warnings
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines.answers import Answers, trained_on
from dp_leakage.engines.onnx import ROWS, check_same, log_classes
from dp_leakage.models.user_module import module_factory


def answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    """What the module says about the records as they are. It was trained on the only subset.

    Args:
        settings: of step ``train``; the architecture is ``name``, ``module:Class``, ``weights``, a ``.safetensors`` or
            a state dict that PyTorch loads with ``weights_only``, and the class's own arguments.
        data: the records.
        subsets: the records that it was trained on.
        seeds: unused.

    Raises:
        UserError: there is no such module, or the weights or the records do not fit it.
    """
    arguments = {key: value for key, value in settings["architecture"].items() if key not in ("name", "weights")}
    module = module_factory(settings["architecture"]["name"], data.x.shape[1:], data.n_classes, **arguments)()
    path = user_path(settings["architecture"]["weights"])
    try:
        module.load_state_dict(_weights(path))
    except (RuntimeError, TypeError, AttributeError) as error:
        raise UserError(f"{path} does not fit {settings['architecture']['name']}: {_words(error)}") from None
    module.eval()
    x = torch.from_numpy(data.x).split(ROWS)
    try:
        with torch.no_grad():
            parts = [module(part).double().numpy() for part in x]
            again = module(x[0]).double().numpy()
    except Exception as error:  # a user's module can raise anything
        raise UserError(
            f"{settings['architecture']['name']} cannot be asked about the records: {_words(error)}"
        ) from None
    check_same(parts[0], again, settings["architecture"]["name"])
    said = log_classes(np.concatenate(parts), data.n_classes, settings["architecture"]["name"])
    return Answers.of(trained_on(data, subsets[:1]), said[None], data.y)


def _weights(path: Path) -> dict[str, torch.Tensor]:
    if not is_file(path):
        raise UserError(f"{path}: no such file; valid are weights as .safetensors or a state dict (.pt)")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on how a file was made, before it is refused
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:  # the library's words advise to run the file's code
        valid = "torch.save(model.state_dict(), …), or a .safetensors"
        raise UserError(f"{path} holds Python objects, which are never loaded; valid is {valid}") from None
    except Exception as error:
        raise UserError(f"{path} cannot be read as weights without running code ({_words(error)})") from None


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
