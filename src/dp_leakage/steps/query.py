"""Query a group of trained models about the records, once for all attacks: signals, or class scores."""

from pathlib import Path

import torch

from dp_leakage.attacks.queries import ask, ask_probabilities, asked_records
from dp_leakage.common.kernels import exact
from dp_leakage.engines import ENGINES
from dp_leakage.engines.answers import Answers, signals_of
from dp_leakage.provenance.files import read_tensors, write_arrays
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import device_of, models_of, settings_of


def main(
    settings: Json,
    data: Path,
    models: Path,
    signals: Path | None = None,
    class_scores: Path | None = None,
    device: str = "auto",
) -> None:
    """Read models; write their signals on all records, or class scores of the records of some roles."""
    dataset = read_dataset(data, settings["data"])
    tensors, made = read_tensors(models, settings["models"])
    if settings_of(made, models)["engine"] in ENGINES:
        answers = Answers.from_tensors(tensors)
        if signals:
            said = signals_of(answers, dataset, *asked_records(dataset), settings["queries"])
        else:
            record, probability = answers.probabilities(asked_records(dataset, settings["roles"])[0])
    else:
        asked = models_of(tensors, made, dataset, models, settings["models"]).to(device_of(device, needed=False))
        with exact():
            if signals:
                said = ask(asked, dataset, settings["queries"])
            else:
                record, probability = ask_probabilities(asked, dataset, settings["roles"])
    if signals:
        write_arrays(signals, said.arrays(), provenance(settings))
    if class_scores:
        write_arrays(class_scores, {"record": record, "probability": probability}, provenance(settings))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(
        main,
        "data",
        "models",
        "signals?",
        "class_scores?",
        options={"device": "auto"},
        kept=("signals", "class_scores"),
    )
