"""Steps of the workflow: inputs, outputs, settings, code, memory and time of each.

A new step is an entry of `STEPS` in one of these modules, a module of `dp_leakage.steps`, and a rule of
``workflow/rules`` with its files in sight, or a line of `judge`, whose jobs run several steps (`JOBS`). The rule asks
for the rest by its name. Paths, identities, fingerprints and resources follow from the entry.
"""

from dp_leakage.study.steps.attack import attack_inputs, attack_settings
from dp_leakage.study.steps.data import data_identity, features_of, prepare_settings, project_settings
from dp_leakage.study.steps.entry import STEPS, Job, cell_of, made, settings_of
from dp_leakage.study.steps.judge import JOBS, joined_apart, shapes
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

ENTRIES = STEPS | JOBS  # by the names of the rules

__all__ = [
    "AUXILIARY",
    "ENTRIES",
    "STEPS",
    "TIMING",
    "Job",
    "attack_inputs",
    "attack_settings",
    "auxiliary_settings",
    "cell_of",
    "data_identity",
    "delta_of",
    "features_of",
    "group_of",
    "joined_apart",
    "made",
    "measure_settings",
    "models_of",
    "prepare_settings",
    "project_settings",
    "settings_of",
    "shapes",
    "train_settings",
    "training_group",
    "tune_settings",
]  # fmt: skip
