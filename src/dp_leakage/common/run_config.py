"""config.yaml: the settings of a run that do not belong to a study."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dp_leakage.common.places import REPOSITORY
from dp_leakage.common.sections import EACH_ONCE, Section
from dp_leakage.common.yaml_files import Json, read_yaml

CONFIG = Path("config.yaml")


class Config(Section):
    """The keys of config.yaml."""

    scale: Literal["paper", "small", "smoke"] = Field(
        description=(
            "How large a run: `paper` is what the study says, `small` and `smoke` are the reductions that the "
            "study's own `scales` section names. A scale other than `paper` has a results folder of its own."
        ),
    )
    data_dir: str = Field(
        min_length=1,
        description="Folder in which data sets are found, or into which they are downloaded.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        description="Device for training and queries. `auto` uses a CUDA device if there is one.",
    )
    engine: Literal["ensemble", "opacus"] | None = Field(
        None,
        description=(
            "What trains the models that this package trains: `ensemble` (as studies say by default), or "
            "`opacus`, whose results have a folder of their own."
        ),
    )
    checkpoint_seconds: float | None = Field(
        None,
        ge=1,
        description="Seconds between two checkpoints of a training job; a killed job continues from its last one.",
    )
    preload: bool | None = Field(
        None,
        description=(
            "Import PyTorch, pandas and matplotlib once per run, in a process that every job is then forked "
            "from (Linux; on a cluster, once per submission). `false` lets each job import them itself. The "
            "bytes of all results are the same."
        ),
    )
    container: str | None = Field(
        None,
        pattern="^\\S+$",
        description=(
            "Image that jobs run in under `--sdm apptainer`: a file, or an address that apptainer can pull; "
            "`dp-leakage.sif` if left out. Other runs do not look at it."
        ),
    )
    only_datasets: Annotated[list[str], EACH_ONCE] | None = Field(
        None,
        description=(
            "Run a study on these of its data sets only; figures that need another one are left out. Empty means all."
        ),
    )
    study_files: Annotated[list[Annotated[str, Field(min_length=1)]], EACH_ONCE] | None = Field(
        None,
        description="Study files in addition to those in workflow/studies, for example your own.",
    )
    plugins: Annotated[list[Annotated[str, Field(min_length=1)]], EACH_ONCE] | None = Field(
        None,
        description=(
            "Folders of your own attacks, figures, sources of data and mechanisms, one Python file each; see "
            "docs/extend.md. Modules of your own are found there too."
        ),
    )
    overrides: dict[str, dict[str, Any]] | None = Field(
        None,
        description=(
            "Changes to a study without editing its file: study name, then the keys of that study's YAML. "
            "Mappings are merged, everything else (lists too) is replaced, `null` removes a key."
        ),
    )


def read_config(repository: Path = REPOSITORY) -> Json:
    """Return the config of the working folder: its own config.yaml merged over the workflow's.

    A working folder needs no config.yaml, and need not repeat what it does not change.

    Args:
        repository: the folder that holds ``workflow``, with the config.yaml of every key.

    Raises:
        UserError: a file is missing in ``repository``, or is not a YAML mapping.
    """
    if repository.resolve() == Path.cwd():
        return read_yaml(CONFIG)
    whole = read_yaml(repository / CONFIG)
    return whole | read_yaml(CONFIG) if CONFIG.exists() else whole
