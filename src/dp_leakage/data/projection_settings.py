"""Settings of the key ``projection`` of a data set. Imports nothing heavy, so that planning can read it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from dp_leakage.common.errors import UserError, nearest

PRIVATE, PRIVATE_PCA = "private", "private_pca"  # of scale and of method: fitted with noise
FEATURES = "dp_leakage.steps._features"  # the module that reads learned features, imported where there are some
LEARNED = "learned"  # of features: what a network computes that was trained on public records
# Whose output they are: that of all layers but the last, or of those that see images.
HIDDEN, CONVOLUTIONS = "hidden", "convolutions"
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


@dataclass(frozen=True)
class ProjectionSettings:
    """The key; what is left out does nothing."""

    mean_std: Any = None  # constants, or one of each for each channel: every value becomes (value − first)/second
    features: str = "none"  # one of `CHOICES`
    learned_on: Any = None  # of features learned: source, architecture, training, layers
    groups: int | None = None  # of channels: each is normalized within each record
    scale: str = "none"  # one of `CHOICES`
    bounds: Any = None  # of scale private: lengths to which a record's channel means, and mean squares, are clipped
    method: str = "none"  # one of `CHOICES`
    components: Any = None  # of pca and private_pca
    noise: Any = None  # of private_pca or scale private: noise multiplier
    whiten: bool = False  # divide each component by its standard deviation
    row_norm: bool = False  # divide each row by its ℓ2 norm
    fit_on: Any = "all"  # all records that have a role, or a list of roles

    @classmethod
    def read(cls, settings: Mapping[str, Any] | None) -> "ProjectionSettings":
        """Read the key of a data set, which may be missing. Raises UserError for an unknown key."""
        known = [field.name for field in fields(cls)]
        for key in settings or {}:
            if key not in known:
                raise UserError(f"projection: unknown key {key!r}; {nearest(key, known)}")
        return cls(**settings or {})

    @property
    def missing(self) -> list[tuple[str, str]]:
        """(choice, key) for each missing key that a choice needs."""
        chosen = [(key, getattr(self, key)) for key in NEEDED]
        return [
            (f"{key} {choice}", name)
            for key, choice in chosen
            for name in NEEDED[key].get(choice, ())
            if getattr(self, name) is None
        ]

    @property
    def fits(self) -> bool:
        """Whether anything is fitted on records."""
        return self.scale != "none" or self.method != "none"

    @property
    def private(self) -> bool:
        """Whether a part is fitted with noise, whose cost is composed with the training's."""
        return self.method == PRIVATE_PCA or self.scale == PRIVATE

    @property
    def signed(self) -> bool:
        """Whether the inputs of ``scale`` may be negative according to the settings (never to the records)."""
        return not (self.mean_std is None and self.groups is None and self.learned_on is None)

    @property
    def learns(self) -> bool:
        """Whether a network learns the features, in a separate step."""
        return self.features == LEARNED

    def fitted_on(self, roles: Iterable[str]) -> list[str]:
        """Return the roles among these whose records fits use."""
        return [role for role in roles if self.fit_on == "all" or role in self.fit_on]
