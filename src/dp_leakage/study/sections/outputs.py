"""What a study draws, audits, times and releases."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dp_leakage.common.sections import EACH_ONCE, NULL, Above0, Name, Section


class Acceptable(Section):
    """Conditions for a recommended setting, with 95 % confidence for all private settings together."""

    accuracy_loss: float | None = Field(
        None,
        ge=0,
        lt=1,
        description=(
            "The largest acceptable loss in the study's measure of use (`utility`), a fraction of what the "
            "best undefended model of the data set reaches; 0.1 by default."
        ),
    )
    advantage: float | None = Field(
        None,
        le=1,
        gt=0,
        description=(
            "The largest acceptable advantage of an attacker (true less false positive rate), in the study's "
            "own game; 0.1 by default. An attacker with 0.1 is right in 55 of 100 cases instead of 50, among "
            "as many members as non-members. Choose less where being a member is rare or tells much."
        ),
    )
    risk: Literal["measured", "proven"] | None = Field(
        None,
        description=(
            "`measured` (the default): the strongest attack's advantage must be within the limit, or any "
            "attack's proven to be. `proven`: any attack's must be proven to be."
        ),
    )


class Share(Section):
    """What `dp-leakage share` copies by default."""

    epsilon: float | None = Field(
        None,
        gt=0,
        description=(
            "The largest ε of models whose parameters are copied without --undefended; 20 by default. It is "
            "the ε of a record (or person) for the neighbors that the study's attacks distinguish. A larger ε "
            "protects next to nothing."
        ),
    )


class Tune(Section):
    """Each cell trains with the learning rate that does best on the records of the role `tuning`, which no model of
    the study trains on or is judged by. A defense with a `learning_rate` of its own keeps it.
    """

    learning_rate: Annotated[list[Above0], EACH_ONCE] = Field(
        min_length=1,
        description="Rates to try, with the steps, batch size and noise of the cell's own training.",
    )


class AuditDesign(Section):
    """A design of the audit."""

    shared = True
    design: Literal["one_run", "many_runs", "trials"] = Field(
        description=(
            "`many_runs`: one canary, one coin for each model. `one_run`: many canaries, each with a coin of "
            "its own; all models' coins count together. `trials`: as many_runs, with a threshold that half of "
            "the models choose."
        ),
    )
    models: int = Field(ge=1, le=100_000, description="Number of models, with their own random inclusion.")
    canaries: int | None = Field(
        None,
        ge=1,
        description="Canaries of every model, in place of as many members; 1 by default.",
    )
    canary: Literal["natural", "mislabeled", "optimized", "feature", "blank", "gradient"] | None = Field(
        None,
        description=(
            "`natural` records, `mislabeled` ones (the default), `optimized` ones (along the directions in "
            "which the records reach least, flat or images), records with a `feature` of their own (flat "
            "records; not with directional noise), `blank` ones (zeros), or a `gradient` along one parameter, "
            "put into every step that draws it."
        ),
    )
    score: Literal["loss", "margin", "white_box"] | None = Field(
        None,
        description=(
            "What the attacker sees: the `loss` (the default) or the `margin` (over shifted and mirrored "
            "images) of the trained model, or `white_box`: every step's noisy update, against the canary's "
            "gradient."
        ),
    )
    claim: Literal["approximate", "own"] | None = Field(
        None,
        description=(
            "What is tested: (ε, δ) alone, `approximate` (the default), or this mechanism's `own` trade-off "
            "curve, with its noise made smaller until it is refuted."
        ),
    )
    relation: Literal["replace_one", "presence"] | None = Field(
        None,
        description=(
            "Alternative to the canary, another record in its place (`replace_one`, the default) or none (`presence`)."
        ),
    )
    start: Literal["random", "trained"] | None = Field(
        None,
        description=(
            "Initial parameters, `random` for each model (the default), or from a training on the non-members "
            "(`trained`)."
        ),
    )
    start_epochs: int | None = Field(None, ge=1, le=1_000_000, description="Epochs of that training; 30 by default.")
    share: float | None = Field(
        None,
        le=1,
        gt=0,
        description=(
            "Share of canaries that are guessed, fixed beforehand; 0.25 by default, and 1 for many_runs "
            "against the own curve."
        ),
    )
    bug: Annotated[
        Literal["noise_forgotten", "noise_divided_twice", "batch_clipped", "batches_shuffled"] | None, NULL
    ] = Field(
        None,
        description="A mistake to plant in the training, which the audit should find.",
    )
    beyond_reach: Literal["refuse", "mark"] | None = Field(
        None,
        description=(
            "What happens where the design cannot show the claimed ε: the study is refused (`refuse`, the "
            "default), or the figure marks it (`mark`)."
        ),
    )


class Audit(Section):
    """Empirical lower bounds on ε, with stated confidence: every cell trains further models with randomly included
    canaries.
    """

    hold: Literal["together", "each"] | None = Field(
        None,
        description=(
            "With 95 % confidence, all bounds of the study `together` (the default; each then needs to be "
            "surer), or `each` for itself."
        ),
    )
    designs: dict[Name, AuditDesign] = Field(
        min_length=1,
        description="By name. A defense without `audits` gets all that plant no bug.",
    )


class ReleaseAudit(Section):
    """Before the release, train twins of it with a canary in or out, and state the lower bound on ε that follows."""

    models: int = Field(ge=2, le=1_000_000, description="Twins; each takes as long as the release.")
    canary: Literal["optimized", "mislabeled", "blank"] | None = Field(None, description="`optimized` if not given.")


class Release(Section):
    """The model that is given away: what `dp-leakage release` trains, once, and what its sheet says. See
    docs/release.md.
    """

    cell: str | None = Field(
        None,
        description=(
            "The cell, `model/defense`, or `dataset/model/defense`. A cell on the command line takes precedence."
        ),
    )
    roles: Annotated[list[str], EACH_ONCE] | None = Field(
        None,
        min_length=1,
        description="Roles of its training records; by default those of the study's models.",
    )
    choose: dict[str, Annotated[list[Any], Field(min_length=1), EACH_ONCE]] | None = Field(
        None,
        min_length=1,
        description=(
            "Setting → values: the best of a random number of trainings is released, with settings drawn from "
            "all combinations, and the choice is part of ε. `learning_rate`, `momentum`, `optimizer`, `l2` and"
            " `initialization` of training, or the architecture's keys."
        ),
    )
    mean: float | None = Field(
        None,
        ge=1,
        le=1000,
        description="With choose, the mean number of trainings; 10 by default.",
    )
    runs: Literal["geometric", "logarithmic"] | None = Field(
        None,
        description="With choose, the distribution of their number; `geometric` by default.",
    )
    score_noise: float | None = Field(
        None,
        gt=0,
        description=(
            "Of choose: the best is that with the most right answers on its own training records, plus "
            "Gaussian noise of this standard deviation, which ε includes. Without it, the answers on "
            "`target_nonmembers` count, without noise."
        ),
    )
    audit: ReleaseAudit | None = None
    data_subjects: str | None = Field(None, description="Description of the people in the data, for the sheet.")
    sensitive_fields: list[str] | None = Field(
        None,
        description="For the sheet; by default the data set's `sensitive`.",
    )
    decision: str | None = Field(None, description="The decision, for the sheet.")
    owner: str | None = Field(None, description="Who answers for the model, for the sheet.")
    expires: str | None = Field(
        None,
        description="The last day on which the decision holds, for the sheet: YYYY-MM-DD, after the day of release.",
    )


class Timing(Section):
    """How long an epoch takes: every defense of a (data set, model), Opacus' hooks and plain PyTorch in turns in one
    process, one model each. For figures that show it.
    """

    rounds: int = Field(ge=1, description="Epochs of each that are timed.")
    records: int = Field(ge=1, description="Number of members in such an epoch.")


class Figure(Section):
    """One figure."""

    shared = True
    kind: str = Field(description="One of the kinds below, or a plugin's.")
    title: str | None = Field(None, description="Above the picture and in the list of targets.")
    caption: str | None = Field(None, description="Under the picture in the report, instead of the kind's own.")
    parts: Annotated[list[str], EACH_ONCE] | None = Field(
        None,
        description="Measurements that it draws, `training` or names of attacks.",
    )
    select: dict[str, Annotated[list[Any], Field(min_length=1)]] | None = Field(
        None,
        description="Cells that it draws, attribute → values; none means all.",
    )
    settings: dict[str, Any] | None = Field(None, description="Settings of the kind, see below.")


class Scales(Section):
    """Reductions of the study, merged into it by `scale`, after `overrides`; of counts that both name, the smaller
    holds; of a list of numbers in `overrides`, such as ε, as many hold as the reduction lists, the first and the
    last among them.
    """

    small: dict[str, Any] | None = Field(None, description="A reduction that still shows the effect.")
    smoke: dict[str, Any] | None = Field(None, description="The whole way in minutes; its numbers mean nothing.")
