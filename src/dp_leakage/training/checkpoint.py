"""Checkpoint from which a killed training job continues: one file, replaced atomically.

No other module of the trainer touches a file.
"""

import glob
import json
import os
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dp_leakage.common.errors import UserError


@dataclass
class Checkpoint:
    """A checkpoint file.

    Attributes:
        path: the file; its folder must exist.
        identity: identity of the job's result (cell and code), an opaque string that may be part of a file's name: a
            file with another one is refused.
        interval: seconds between two saves; 0 saves after every epoch.
    """

    path: Path
    identity: str
    interval: float = 60.0
    _saved_at: float = field(default_factory=time.monotonic, repr=False)

    def due(self) -> bool:
        """Return whether ``interval`` has passed since the last save."""
        return time.monotonic() - self._saved_at >= self.interval

    def save(self, tensors: dict[str, Tensor], facts: dict) -> None:
        """Replace the file atomically. The tensors may be on any device; ``facts`` are JSON data."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        path = Path(self.path)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        saved = json.dumps(facts)
        metadata = {"identity": self.identity, "facts": saved, "digest": _digest(tensors, saved)}
        try:
            save_file(tensors, temporary, metadata)
        except SafetensorError as error:
            raise UserError(f"checkpoint {path} cannot be written: {error}") from error
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        self._saved_at = time.monotonic()

    def load(self) -> tuple[dict[str, Tensor], dict] | None:
        """Return the saved data, or None. Removes half-written files of killed processes.

        Raises:
            UserError: the file is damaged, or belongs to another cell or another version of the code.
        """
        path = Path(self.path)
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):  # by a killed process
            left.unlink(missing_ok=True)
        if not path.exists():
            return None
        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        except (SafetensorError, OSError) as error:
            raise UserError(f"checkpoint {path} cannot be read ({error}); delete it to train again") from error
        if metadata.get("identity") != self.identity:
            raise UserError(
                f"checkpoint {path} belongs to another cell or another version of the code; delete it to train again"
            )
        if metadata["digest"] != _digest(tensors, metadata["facts"]):
            raise UserError(f"checkpoint {path} is damaged; delete it to train again")
        return tensors, json.loads(metadata["facts"])


def checkpoint_beside(output: Path, identity: str, interval: float, part: str = "") -> Checkpoint:
    """Return the checkpoint of a job, or of a part of it, in a file next to its ``output`` with its identity in the
    name.

    A job starts again after a change of settings or code, and continues if the change is reverted, until
    `forget_beside`.
    """
    names = [output.stem, *([part] if part else []), identity]
    return Checkpoint(output.with_name(f".{'.'.join(names)}.checkpoint"), identity, interval)


def forget_beside(output: Path) -> None:
    """Delete all checkpoints next to a complete output, including those of other settings."""
    for left in output.parent.glob(f".{glob.escape(output.stem)}.*.checkpoint"):
        left.unlink(missing_ok=True)


def _digest(tensors: dict[str, Tensor], facts: str) -> str:
    digest = sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].contiguous().numpy())
    return digest.hexdigest()
