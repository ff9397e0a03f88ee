"""Train, on public records, the network that computes a data set's features."""

from pathlib import Path

import numpy as np
import torch

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.common.paths import use_copies
from dp_leakage.data import files_of, load
from dp_leakage.data.projection import constants_taken
from dp_leakage.data.raw import filled
from dp_leakage.provenance.files import write_tensors
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._features import PUBLIC, digests
from dp_leakage.steps._models import architecture_of, device_of
from dp_leakage.steps._source import read_source
from dp_leakage.training.checkpoint import checkpoint_beside, forget_beside
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train


def main(
    settings: Json,
    features: Path,
    device: str,
    checkpoint_seconds: float,
    data_dir: Path,
    own: list[Path] | None = None,
) -> None:
    """Read the public records and write the network.

    It also looks at the study's own records, but only at their shape, before it trains.
    """
    use_copies([*files_of(settings["source"]), *files_of(settings["for"])], own)
    public = filled(read_source(settings["source"], settings["content"], data_dir), {})
    name, shape = f"datasets.{settings['dataset']}", load(settings["for"], data_dir).x.shape[1:]
    if shape != public.x.shape[1:]:
        shapes = " and ".join(" × ".join(map(str, sides)) for sides in (shape, public.x.shape[1:]))
        raise UserError(f"{name}.projection.learned_on: records of {name} and of its source differ in shape, {shapes}")
    rows = public.given if {"train", "test"} <= set(public.given) else {"train": np.arange(len(public.y))}
    seen = digests(public.x[rows["train"]])
    if settings["mean_std"] is not None:
        public = public._replace(x=constants_taken(public.x, settings["mean_std"]))
    x, y = torch.from_numpy(public.x.astype(np.float32, copy=False)), torch.from_numpy(public.y.astype(np.int64))
    resume = checkpoint_beside(features, identity(settings), checkpoint_seconds)
    training = TrainingSettings(**settings["training"])
    try:
        network, history = train(
            architecture_of(settings | {"dropout": 0.0}, tuple(x.shape[1:]), len(public.class_names)),
            x,
            y,
            torch.from_numpy(rows["train"])[None],
            [settings["seed"]],
            training,
            evaluate_on=torch.from_numpy(rows["test"]) if "test" in rows else None,
            device=device_of(device),
            checkpoint=resume,
            on_epoch=lambda epoch: log.info("epoch %d of %d", epoch, training.epochs),
        )
    except UserError as error:
        raise UserError(f"{name}.projection.learned_on: {error}") from None
    accuracy = {key: float(history[-1][f"{key}_accuracy"]) for key in rows if key in ("train", "test")}
    stamp = provenance(
        settings,
        sha256=dict(public.sha256),
        shape=list(x.shape[1:]),
        classes=len(public.class_names),
        records={key: len(rows[key]) for key in accuracy},
        accuracy=accuracy,
        device=device_of(device),
    )
    tensors = {key: value.cpu().numpy() for key, value in network.tensors().items()}
    write_tensors(features, tensors | {PUBLIC: seen}, stamp)
    forget_beside(features)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(
        main,
        "features",
        lists=("own",),
        options={"device": "auto", "checkpoint_seconds": 60.0, "data_dir": Path("data")},
        kept=("features",),
    )
