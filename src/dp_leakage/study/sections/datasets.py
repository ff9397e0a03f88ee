"""Data sets in a study file: their records, who gets which, and how features are transformed."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dp_leakage.common.sections import EACH_ONCE, NULL, Above0, Section, Words
from dp_leakage.study.sections.models import Auxiliary, ModelChanges, Named, Training

MEAN_STD = Words(
    prefixItems=[
        {"anyOf": [{"type": "number", **above}, {"type": "array", "minItems": 1, "items": {"type": "number", **above}}]}
        for above in ({}, {"exclusiveMinimum": 0})
    ]
)


class Roles(Section):
    """Records per role; roles never share a record."""

    target_members: int | None = Field(
        None,
        ge=1,
        description="The models under attack train on these. Of design split.",
    )
    pool: int | None = Field(
        None,
        ge=20,
        description="Design coins only. In each repeat the models under attack train on a random half of these.",
    )
    target_nonmembers: int = Field(
        ge=1,
        description="Records for test accuracy and, in design split, the non-members of attacks.",
    )
    shadow_pool: int | None = Field(None, ge=1, description="Shadow models draw their records from these.")
    reference_pool: int | None = Field(None, ge=1, description="Reference models draw their records from these.")
    tuning: int | None = Field(
        None,
        ge=2,
        description="Learning rates are tried on these, half against half; see `tune`.",
    )


class LearnedOn(Section):
    """Of features learned: a network is trained without privacy on public records of the same shape, which must not
    be among your own, and what its layers compute replaces each record.
    """

    source: str | dict[str, Any] = Field(
        description=(
            "The public records, as a data set's `source`. If the source has an official split, its training "
            "records are used."
        ),
    )
    architecture: Named = Field(description="`name` of a built-in architecture and its own keys.")
    training: Training = Field(description="How it is trained.")
    layers: Literal["hidden", "convolutions"] | None = Field(
        None,
        description="Layers that compute the features, all `hidden` ones (the default) or only the `convolutions`.",
    )


class Projection(Section):
    """Transformation of the features before training; null or nothing leaves them unchanged."""

    mean_std: Annotated[list[Any], MEAN_STD] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description=(
            "Two constants, or two lists with one for each channel: the first is taken from every value, the "
            "rest divided by the second, before anything else. They cost no privacy if they were not computed "
            "from the private records."
        ),
    )
    features: Literal["none", "scattering", "learned"] | None = Field(
        None,
        description=(
            "`scattering`: wavelet features of each image (81 maps a channel); nothing is learned, so they "
            "cost no privacy. `learned`: what a network computes that learned on public records, see "
            "`learned_on`; as long as those are public, they cost none either."
        ),
    )
    learned_on: LearnedOn | None = None
    groups: int | None = Field(
        None,
        ge=1,
        description="Number of groups for group normalization of each record's channels; it costs no privacy.",
    )
    scale: Literal["none", "standard", "range", "private"] | None = Field(
        None,
        description=(
            "Zero mean and unit variance (features of zeros and ones stay so), into [0, 1], or each channel to"
            " zero mean and unit variance as found with noise, whose cost is part of ε; channels that are lost"
            " in the noise stay small."
        ),
    )
    bounds: list[Above0] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description=(
            "Of scale private: lengths to which the vector of a record's channel means, and that of their mean"
            " squares, are clipped. Choose them on other records."
        ),
    )
    method: Literal["none", "pca", "private_pca"] | None = Field(
        None,
        description="Onto principal components, without or with a privacy budget of its own.",
    )
    components: int | None = Field(None, ge=1, description="Number of components of pca and private_pca.")
    noise: float | None = Field(None, gt=0, description="Noise multiplier of private_pca or of scale private.")
    whiten: bool | None = Field(None, description="Divide each component by its standard deviation.")
    row_norm: bool | None = Field(None, description="Divide each record by its own ℓ2 norm.")
    fit_on: Literal["all"] | Annotated[list[str], Field(min_length=1), EACH_ONCE] | None = Field(
        None,
        description="Roles whose records the projection is computed from; `all` for every record that has a role.",
    )


class Dataset(Section):
    """Source and split of a data set."""

    shared = True
    source: str | dict[str, Any] = Field(
        description=(
            "Name of a bundled or published source (`digits`, `cifar100`, …), or its keys, such as `path` and "
            "`label` for your own data."
        ),
    )
    stand_in: str | dict[str, Any] | None = Field(
        None,
        description=(
            "The source in place of a published one that is never downloaded, such as `purchase100`, while its"
            " file is not in `data_dir`; written like `source`."
        ),
    )
    roles: Roles
    stratified: bool | None = Field(None, description="Keep the classes' shares in every role.")
    augment: Literal["after_split", "before_split"] | None = Field(
        None,
        description=(
            "Fill the roles with varied copies of images where there are fewer images than the roles ask for. "
            "`after_split`: no image and copy of it lie in different roles. `before_split`: they may."
        ),
    )
    official_split: bool | None = Field(
        None,
        description=(
            "Draw the members from the publisher's training records and the non-members from its test records;"
            " other roles from what is left of both."
        ),
    )
    projection: Annotated[Projection | None, NULL] = None
    attacks: list[str] | None = Field(None, description="Only these of the study's attacks are run on this data set.")
    shadow: Auxiliary | None = Field(None, description="Keys of the study's `shadow` that differ on this data set.")
    reference: Auxiliary | None = Field(
        None,
        description="Keys of the study's `reference` that differ on this data set.",
    )
    models: dict[str, ModelChanges] | None = Field(
        None,
        description="Changes for this data set, by model name (merged into the model).",
    )
