"""Learned features, from the network's file. Separate from `project`, which other data sets run without a network."""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dp_leakage.common.errors import UserError
from dp_leakage.data.outside import LEARNED
from dp_leakage.data.projection_settings import CONVOLUTIONS
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.features import kept_layers
from dp_leakage.provenance.files import read_tensors
from dp_leakage.steps import Json
from dp_leakage.steps._models import architecture_of

AT_ONCE = 256  # records
PUBLIC = "public"  # the array of the public records' digests


def digests(x: np.ndarray) -> np.ndarray:
    """Return a number for each record (n, …), equal for equal records and different otherwise up to a probability
    of 2⁻⁶⁴: int64, (n,).
    """
    rows = np.ascontiguousarray(x, np.float32)
    made = [int.from_bytes(blake2b(row.tobytes(), digest_size=8).digest(), "little", signed=True) for row in rows]
    return np.array(made, np.int64)


@dataclass(frozen=True)
class Learned:
    """Network that computes learned features.

    Attributes:
        module: records (n, …) to features (n, …), both float32.
        notes: sentences for the report.
        sha256: file → SHA-256 of the public records.
        copies: number of the study's records among them, value for value.
    """

    module: nn.Module
    notes: list[str]
    sha256: dict[str, str]
    copies: int

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the features of records (n, …), float32."""
        records = torch.from_numpy(x.astype(np.float32, copy=False))
        with torch.no_grad():
            return torch.cat([self.module(part) for part in records.split(AT_ONCE)]).numpy()


def read_features(path: Path, identity: str, layers: str, own: np.ndarray) -> Learned:
    """Read the output of step ``learn_features``.

    Args:
        path: its file.
        identity: of the settings that it was made from.
        layers: layers that compute the features, see `kept_layers`.
        own: the study's records, (n, …), as they are prepared, of which those among the public ones are counted.

    Raises:
        UserError: the file is damaged or of another identity, or the network has no such layers.
    """
    tensors, made = read_tensors(path, identity)
    copies = int(np.isin(digests(own), tensors.pop(PUBLIC)).sum())
    known = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    network = architecture_of(made["settings"] | {"dropout": 0.0}, tuple(made["shape"]), made["classes"])
    kept = kept_layers(network, tuple(made["shape"]), layers)
    if not kept:
        raise UserError(f"projection: learned_on has layers {layers}, which its architecture lacks")
    module = Ensemble.from_tensors(network, known).module(0)[:kept]
    return Learned(module, _sentences(made, layers, copies), made["sha256"], copies)


def _sentences(made: Json, layers: str, copies: int) -> list[str]:
    settings, records, accuracy = made["settings"], made["records"], made["accuracy"]
    network = settings["architecture"]["name"]
    which = "convolutions" if layers == CONVOLUTIONS else "hidden layers"
    right = f" and is right on {accuracy['test']:.1%} of {records['test']:,} others" if "test" in accuracy else ""
    notes = [
        f"Features: the outputs of the {which} of a {network}, which learned from {records['train']:,} records of "
        f"{settings['source']['source']}{right}. Those records count as public: no ε is of them."
    ]
    if copies:
        notes.append(f"{copies:,} records of the study are among those public ones, value for value. {LEARNED}.")
    return notes
