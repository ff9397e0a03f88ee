"""Defenses in a study file, and the budgets that a study gives them."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from dp_leakage.common.sections import EACH_ONCE, Above0, Section
from dp_leakage.study.sections.models import Descent

RdpSigma = Annotated[
    Literal["calibrated_tight", "calibrated_classic", "authors_table"],
    Field(
        description="Source of σ for accountant rdp, solved with the tight conversion from RDP to (ε, δ), "
        "with the classic one, or the table in the code of jayaraman2019's authors."
    ),
]
Target = dict[str, float]
Targets = Annotated[
    Target | Annotated[list[Target], Field(min_length=1)],
    Field(
        description="Noise is chosen so that no attack can reach more, as the training itself proves: "
        "`{advantage: 0.1}` (true less false positive rate), `{tpr: 0.05, fpr: 0.001}` (members named at a false "
        "positive rate), or `{precision: 0.5, prior: 0.01}` (of those accused the share that are members, "
        "where one in a hundred is; at fpr 0.001, if no other is said). One, or a list."
    ),
]
Budgets = Annotated[list[Annotated[float, Field(ge=1e-5, le=1e6)]], Field(min_length=1)]
Positives = Annotated[list[Above0], Field(min_length=1)]


class DefenseTraining(Descent):
    """Keys of `training` that differ under a defense."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["batch_size", "sampling_rate"]}})
    sampling_rate: float | None = Field(
        None,
        le=1,
        gt=0,
        description="The chance q; the batch size is q · members, to the nearest record.",
    )


class Defense(Section):
    """One entry of `defenses`. A mechanism declares further keys, which are checked beside it."""

    model_config = ConfigDict(extra="allow")
    shared = True
    defense: str = Field(
        description=(
            "none, l2, dropout, l2_dropout, claimed (an estimator's own private training), a mechanism (below,"
            " each with the keys of its own), or the name of a mechanism of your own (see docs/extend.md)."
        ),
    )
    datasets: list[str] | None = Field(None, description="Only on these data sets.")
    models: list[str] | None = Field(None, description="Only for these models.")
    l2: Above0 | Positives | None = Field(
        None,
        description=(
            "λ of defense l2 and l2_dropout; a list makes one cell for each, called l2-lambda=VALUE. With a "
            "private defense: one number, instead of the training's own, and part of the cell's name."
        ),
    )
    learning_rate: Positives | None = Field(
        None,
        description="Instead of the training's own; one cell for each, and part of its name.",
    )
    dropout: float | None = Field(None, gt=0, lt=1, description="Rate of defense dropout and l2_dropout.")
    accountant: str | Annotated[list[str], Field(min_length=1)] | None = Field(
        None,
        description="One name or several; one cell for each.",
    )
    sampler: str | None = Field(
        None,
        description=(
            "How batches are drawn: `shuffle`, each record once an epoch; `poisson`, each with a probability "
            "of its own; `wor`, a fixed number afresh at each step; `cyclic`, each once an epoch in the same "
            "order in all; `balls_in_bins`, each in one step of an epoch, drawn by itself; `cyclic_poisson`, "
            "as `poisson`, but from parts of the data that take turns, for banded noise; `class_poisson`, "
            "whole (sub)classes; or that of a plugin. By default the accountant's own."
        ),
    )
    unit: str | None = Field(None, description="Unit of bounding, each example's gradient or the whole batch's.")
    bound: Literal["clip", "normalize", "per_layer"] | None = Field(
        None,
        description=(
            "Gradients are made no longer than clip_norm, or exactly that long, or each layer's no longer than"
            " an equal share of clip_norm, so that the whole is no longer."
        ),
    )
    block: Literal["whole", "layer", "row", "sum"] | None = Field(
        None,
        description=(
            "Of vmf: what is one direction. The whole gradient, each layer, each row of a layer, or the summed"
            " gradient."
        ),
    )
    clip_norm: float | None = Field(None, gt=0, description="C, the bound on a gradient's ℓ2 norm; 1 if not given.")
    training: DefenseTraining | None = None
    epsilon: Budgets | None = Field(None, description="Budgets ε instead of the study's; one cell for each.")
    target: Targets | None = Field(None, description="Instead of epsilon, the risk that no attack may exceed.")
    noise_multiplier: Positives | None = Field(None, description="Noise multipliers instead of ε; one cell for each.")
    delta: float | None = Field(None, gt=0, lt=1, description="Instead of the study's.")
    rdp_sigma: RdpSigma | None = None
    repeats: int | None = Field(None, ge=1, le=1000, description="Instead of the study's.")
    attacks: Annotated[list[str], EACH_ONCE] | None = Field(
        None,
        description="Only these of the study's attacks; an empty list trains and measures accuracy alone.",
    )
    audits: Annotated[list[str], EACH_ONCE] | None = Field(
        None,
        description="Only these of the study's designs of audit; an empty list audits nothing.",
    )
    accounting_note: str | None = Field(
        None,
        description="Printed under every figure, e.g. where a sampler does not fit its accountant.",
    )
