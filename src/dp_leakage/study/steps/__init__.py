"""Every step of the workflow: what it reads and writes, what sets it, which code counts, memory and time.

A new step is an entry of `STEPS` in one of these modules, a module of `dp_leakage.steps`, and a rule of
``workflow/rules`` with its files in sight. The rule asks for the rest by its name. Paths, identities, fingerprints and
resources follow from the entry. `data`, `train` and `attack` stand beside the rules of the same name; those of
`measure` are in ``attack.smk``.
"""

from dp_leakage.study.steps.attack import READ_BY_ATTACKS, attack_inputs, attack_settings, attacks_that, query_group
from dp_leakage.study.steps.data import data_identity, features_of, prepare_settings, project_settings
from dp_leakage.study.steps.entry import STEPS, cell_of, made, settings_of
from dp_leakage.study.steps.measure import delta_of, measure_settings
from dp_leakage.study.steps.train import (
    AUXILIARY,
    TIMING,
    auxiliary_settings,
    group_of,
    models_of,
    train_settings,
    training_group,
    tune_settings,
)

__all__ = [
    "AUXILIARY", "READ_BY_ATTACKS", "STEPS", "TIMING", "attack_inputs", "attack_settings", "attacks_that",
    "auxiliary_settings", "cell_of", "data_identity", "delta_of", "features_of", "group_of", "made",
    "measure_settings", "models_of", "prepare_settings", "project_settings", "query_group", "settings_of",
    "train_settings", "training_group", "tune_settings",
]  # fmt: skip
