"""Fit an attack to shadow or reference models: once per (data set, model), shared by all cells."""

from pathlib import Path

from dp_leakage.attacks.checks import checked_arrays
from dp_leakage.common.user_code import call
from dp_leakage.provenance.files import write_tensors
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._signals import read_signals


def main(
    settings: Json, signals: Path, class_scores: Path | None = None, data: Path | None = None, *, fitted: Path
) -> None:
    """Read the auxiliary models' outputs and write the attack's fit."""
    said = read_signals(settings["inputs"], signals, class_scores, data)
    arrays = call(settings["module"], "fit", said, settings["settings"], settings["seed"])
    arrays = checked_arrays(arrays, f"plugin {settings['module']}: fit returns")
    write_tensors(fitted, arrays, provenance(settings))


if __name__ == "__main__":
    run(main, "signals", "class_scores?", "data?", "fitted", kept=("fitted",))
