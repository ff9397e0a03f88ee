"""Models and their training in a study file."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from dp_leakage.common.sections import EACH_ONCE, NULL, Section, Words

Named = Annotated[dict[str, Any], Words(required=["name"])]  # an architecture with its own keys


class Views(Section):
    """Augmentation multiplicity, the augmented copies of each image in each step. Their mean gradient is bounded as
    one, so they cost no privacy.
    """

    count: int = Field(ge=1, le=1000, description="Views of each image.")
    shift: int | None = Field(
        None,
        ge=0,
        le=100,
        description="The most pixels by which a view is moved; 4 if not given.",
    )
    mirror: bool | None = Field(
        None,
        description="Whether half of the copies are mirrored left to right; true by default.",
    )


class Descent(Section):
    """Training settings that a defense may change too."""

    optimizer: Literal["adam", "sgd"] | None = Field(
        None,
        description="Adam as published (β 0.9 and 0.999), or gradient descent.",
    )
    learning_rate: float | None = Field(None, le=1000, gt=0, description="Step size.")
    momentum: float | None = Field(None, ge=0, lt=1, description="Momentum of sgd.")
    epochs: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Each has ⌈members / batch_size⌉ steps, whatever the sampler; in design coins ⌈pool / batch_size⌉.",
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        description=(
            "Records per batch (expected number for random samplers). In design coins they are drawn from the "
            "pool, and half of them are included."
        ),
    )
    evaluate_every: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Epochs between two evaluations; the last epoch is always evaluated.",
    )


class TrainingChanges(Descent):
    """Training settings, each of which may be left out."""

    shared = True
    final_learning_rate: Annotated[float | None, NULL] = Field(
        None,
        gt=0,
        description="The rate falls to this, epoch by epoch, until the last epoch; without it, it stays.",
    )
    schedule: Literal["linear", "cosine"] | None = Field(
        None,
        description="Shape of the change to final_learning_rate; linear by default.",
    )
    warmup_epochs: int | None = Field(
        None,
        ge=0,
        description="Epochs at the beginning in which the rate rises linearly; 0 if not given.",
    )
    average_decay: float | None = Field(
        None,
        gt=0,
        lt=1,
        description=(
            "Keep an exponential moving average of the parameters instead of the last ones: the share of the "
            "average that stays at each step. It costs no privacy."
        ),
    )
    views: Annotated[Views | None, NULL] = None
    average_epochs: int | None = Field(
        None,
        ge=1,
        description="Number of last epochs over whose steps the parameters are averaged. It costs no privacy.",
    )
    l2: float | None = Field(
        None,
        ge=0,
        description="λ of the penalty λ·Σw² on weights (not biases); its gradient 2λw is added after noising.",
    )
    l2_on: Literal["all", "last"] | None = Field(
        None,
        description="Penalize the weights of all layers or of the last alone.",
    )
    l2_applied: bool | None = Field(
        None,
        description="false leaves the l2 term out (but for defenses that bring their own λ).",
    )
    initialization: Literal["torch", "glorot"] | None = Field(
        None,
        description="Initialization of the built-in layers, as PyTorch's (`torch`) or as Keras' (`glorot`).",
    )


class Training(TrainingChanges):
    """Training settings of all models; omitted if no model is trained here."""

    shared = True
    model_config = ConfigDict(json_schema_extra={"required": ["optimizer", "learning_rate", "epochs", "batch_size"]})


class Architecture(Section):
    """`name` of the architecture and its own keys, e.g. `hidden: [256, 256]`. For a torch.nn.Module of yours the
    name is where Python finds your class or function, as in `my_models:Net`, and the keys are its arguments.
    """

    model_config = ConfigDict(extra="allow")
    name: str | None = Field(None, description="An architecture below, or `module:Class`.")


class Private(Section):
    """With engine estimator: what defense `claimed` trains. `name` of a class that takes `epsilon` (and `delta`,
    where it does), its other arguments, and `by`, whose claim ε is. `privacy_bounds: [0, 1]` are those of every
    feature.
    """

    model_config = ConfigDict(extra="allow")
    name: str = Field(description="Import path, `module:Class`.")
    by: str = Field(description="The library that claims ε.")


class ModelChanges(Section):
    """A model as a data set changes it: keys that are left out are those of the study."""

    shared = True
    engine: Literal["ensemble", "opacus", "estimator", "outputs", "onnx", "module"] | None = Field(
        None,
        description=(
            "`ensemble` trains the built-in architectures and any torch.nn.Module of yours, `estimator` a "
            "classifier of scikit-learn or LightGBM. `opacus` trains what `ensemble` trains, one model after "
            "the other, by Opacus' PrivacyEngine and its Poisson loader: the reference that ours is held "
            "against, many times slower. Models that exist already: `outputs`, what they said in a table; "
            "`onnx`; `module`, a torch.nn.Module with its weights."
        ),
    )
    architecture: Architecture | None = None
    private: Private | None = None
    training: TrainingChanges | None = Field(None, description="Keys of `training` that differ for this model.")


class NamedArchitecture(Architecture):
    """`name` of the architecture and its own keys, e.g. `hidden: [256, 256]`. For a torch.nn.Module of yours the
    name is where Python finds your class or function, as in `my_models:Net`, and the keys are its arguments.
    """

    name: str = Field(description="An architecture below, or `module:Class`.")


class Model(ModelChanges):
    """An architecture, and what its training does differently; its `name` is required here."""

    shared = True
    architecture: NamedArchitecture


class Auxiliary(Section):
    """Shadow or reference models, shared by all cells of a (data set, model); `count` and `size` are required. In
    design coins the references are the other repeats of the cell itself: then `reference` has the key `defense`
    alone.
    """

    shared = True
    count: int | None = Field(None, ge=1, le=10_000, description="Number of models.")
    size: int | None = Field(None, ge=1, description="Records that each of them trains on.")
    pool: Annotated[list[str], EACH_ONCE] | None = Field(
        None,
        min_length=1,
        description=(
            "Roles whose records they draw from, by default their own pool. With the target's own records "
            "among them (target_members, target_nonmembers), attacks can be online."
        ),
    )
    engine: Literal["ensemble", "opacus", "estimator", "outputs"] | None = Field(
        None,
        description="By default that of the model under attack.",
    )
    architecture: Named | None = Field(None, description="By default that of the model under attack.")
    training: TrainingChanges | None = Field(
        None,
        description=(
            "Keys of `training` that differ for them, as where the attacker trains with other code. By default"
            " they train as the models under attack."
        ),
    )
    defense: Literal["none", "same"] | None = Field(
        None,
        description=(
            "`same`: every cell has its own, under its defense, as an attacker has who knows it (the default "
            "in design coins). `none`: undefended ones, shared by all cells."
        ),
    )
