"""Settings of the key ``projection`` of a data set. Imports nothing heavy, so that planning can read it."""

from collections.abc import Mapping
from typing import Any

PRIVATE, PRIVATE_PCA = "private", "private_pca"  # of scale and of method: fitted with noise
FEATURES = "dp_leakage.steps._features"  # the module that reads learned features, imported where there are some
LEARNED = "learned"  # of features: what a network computes that was trained on public records
# Whose output they are: that of all layers but the last, or of those that see images.
HIDDEN, CONVOLUTIONS = "hidden", "convolutions"

SETTINGS: dict[str, object] = {
    "mean_std": None,  # constants, or one of each for each channel: every value becomes (value − first)/second
    "features": "none",  # none | scattering | learned
    "learned_on": None,  # of features learned: {source, architecture, training, layers}
    "groups": None,  # of channels: each is normalized within each record
    "scale": "none",  # none | standard | range | private
    "bounds": None,  # of scale private: lengths to which a record's channel means, and mean squares, are clipped
    "method": "none",  # none | pca | private_pca
    "components": None,  # of pca and private_pca
    "noise": None,  # of private_pca or scale private: noise multiplier
    "whiten": False,  # divide each component by its standard deviation
    "row_norm": False,  # divide each row by its ℓ2 norm
    "fit_on": "all",  # all records that have a role, or a list of roles
}
CHOICES = {
    "features": ("none", "scattering", LEARNED),
    "scale": ("none", "standard", "range", PRIVATE),
    "method": ("none", "pca", PRIVATE_PCA),
}
NEEDED: dict[str, dict[str, tuple[str, ...]]] = {
    "features": {LEARNED: ("learned_on",)},
    "scale": {PRIVATE: ("bounds", "noise")},
    "method": {"pca": ("components",), PRIVATE_PCA: ("components", "noise")},
}


def missing_keys(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (choice, key) for each missing key that a choice in ``settings`` needs."""
    return [
        (f"{key} {settings[key]}", name)
        for key, needed in NEEDED.items()
        for name in needed.get(settings.get(key, "none"), ())
        if settings.get(name) is None
    ]


def fitted_privately(settings: Mapping[str, Any]) -> bool:
    """Return whether part of the projection is fitted with noise, whose cost is composed with the training's."""
    return settings.get("method") == PRIVATE_PCA or settings.get("scale") == PRIVATE


def signed(settings: Mapping[str, Any]) -> bool:
    """Return whether the inputs of ``scale`` may be negative according to the settings (never to the records)."""
    keys = ("mean_std", "groups", "learned_on")
    return any(settings.get(key) is not None for key in keys)


def learns(settings: Mapping[str, Any]) -> bool:
    """Return whether a network learns the features, in a separate step."""
    return settings.get("features") == LEARNED
