"""The study file as sections: every key with its type, range and description."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dp_leakage.common.sections import EACH_ONCE, Name, Section
from dp_leakage.study.sections.datasets import Dataset
from dp_leakage.study.sections.defenses import Budgets, Defense, RdpSigma, Targets
from dp_leakage.study.sections.models import Auxiliary, Model, Training
from dp_leakage.study.sections.outputs import Acceptable, Audit, Figure, Release, Scales, Share, Timing, Tune


class StudyFile(Section):
    """A study file."""

    study: Name = Field(description="The study's name; its results folder and its targets begin with it.")
    title: str = Field(description="One line for the report and the list of targets.")
    question: str | None = Field(None, description="The study's question, for the report.")
    paper: str | None = Field(None, description="The paper that is reproduced, as a citation.")
    published: str | None = Field(None, description="File with the printed results, next to the study's file.")
    seed: int = Field(ge=0, description="Every random stream of the study derives from this.")
    repeats: int = Field(ge=1, le=1000, description="Target models per cell.")
    looks: list[Annotated[int, Field(ge=1, le=1000)]] | None = Field(
        None,
        min_length=1,
        max_length=3,
        description=(
            "Numbers of repeats at which you will look at the answer, ascending, at most three, fixed before "
            "the first run. `repeats` is one of them: raise it from look to look. A recommendation may then "
            "err in 2.5 % of studies at each of two looks, and in 1.25, 1.25 and 2.5 % at three, so in 5 % at "
            "all looks together. Without this key one look is planned, which may err in 5 %. A scale with "
            "`repeats` of its own plans one look, unless it has `looks` too."
        ),
    )
    design: Literal["split", "coins"] | None = Field(
        None,
        description=(
            "Who trains. `split`: the same members in every repeat. `coins`: in each repeat every record of "
            "the role `pool` is in or out by a fair coin of its own; the other repeats of a cell are its "
            "reference models, and each repeat is an audit."
        ),
    )
    delta: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="δ of every (ε, δ) budget, unless a defense says otherwise.",
    )
    rdp_sigma: RdpSigma | None = Field(
        None,
        description="Source of σ for accountant rdp, unless a defense says otherwise; `calibrated_tight` by default.",
    )
    epsilon: Budgets | None = Field(
        None,
        description="The grid of nominal budgets ε, for defenses that do not bring their own.",
    )
    target: Targets | None = Field(
        None,
        description=(
            "Limits on the risk, one cell each, for defenses that do not bring a budget of their own; see there."
        ),
    )
    choices: list[str] | None = Field(
        None,
        description="Choices where the paper is unclear, one sentence each; printed in the report.",
    )
    acceptable: Acceptable | None = None
    utility: str | None = Field(
        None,
        description=(
            "The measure of use that the study wants to keep: `accuracy`, `balanced_accuracy`, `auroc`, "
            "`average_precision`, `f1`, or a plugin's. The report, its figures, tuned learning rates and "
            "releases judge by it. Of two classes, the last three are about the rarer one; of more, they are "
            "means over each class against all others. By default `accuracy`, and `auroc` where at least 90 % "
            "of a data set's training records have one class."
        ),
    )
    share: Share | None = None
    datasets: dict[Name, Dataset] = Field(min_length=1, description="Name → source and split.")
    models: dict[Name, Model] = Field(
        min_length=1,
        description="Name → architecture and what its training does differently.",
    )
    training: Training | None = None
    tune: Tune | None = None
    defenses: list[Defense] = Field(
        min_length=1,
        description=(
            "One entry per family of cells. An entry with several accountants or budgets makes one cell for "
            "each. The non-private `none` must be among them: accuracy loss is relative to it."
        ),
    )
    shadow: Auxiliary | None = None
    reference: Auxiliary | None = None
    audit: Audit | None = None
    release: Release | None = None
    timing: Timing | None = None
    attacks: dict[str, dict[str, Any]] = Field(
        min_length=1,
        description=(
            "Attack name → its settings (empty for the defaults). Where it is known whose each record is, "
            "membership attacks also have `of_person`: `sum`, `mean`, `max` or `learned`."
        ),
    )
    groups: Annotated[list[Literal["class", "sensitive", "duplicates", "records"]], EACH_ONCE] | None = Field(
        None,
        min_length=1,
        description=(
            "Success of membership attacks in each group of records, and its excess over all other records: by"
            " `class`, by the values of the columns that the source calls `sensitive`, or by whether a record "
            "occurs several times (`duplicates`). `records`: how often single records are named and accused, "
            "in design coins. Not for persons."
        ),
    )
    structure: bool | None = Field(
        None,
        description=(
            "Whether to check the models' structure for disclosure without any attack: small cells, certain "
            "classes, and more parameters than records. For models whose outputs are stored: estimators, and "
            "external models."
        ),
    )
    figures: dict[Name, Figure] = Field(
        description="Figure name → what it draws; each is a target called STUDY_FIGURE.",
    )
    scales: Scales | None = None
