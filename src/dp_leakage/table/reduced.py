"""What a run at a reduced scale says of itself: in its pictures, their csv files, its page and a copy to share.

A study's titles and names of data sets are those of the whole study. At a smaller scale other records may stand behind
a name, such as scikit-learn's digits behind ``cifar100``.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

FULL = "paper"  # the scale of the whole study


def reduced_words(scale: str, sources: Mapping[str, str]) -> str:
    """Return the sentence that a reduced run's results begin with; "" at full scale.

    Args:
        scale: ``paper``, ``small`` or ``smoke``.
        sources: data set → name of the source of its records.
    """
    if scale == FULL:
        return ""
    names: dict[str, list[str]] = {}
    for dataset, source in sources.items():
        names.setdefault(source, []).append(dataset)
    data = "; ".join(
        source if datasets == [source] else f"{source} (called {', '.join(datasets)})"
        for source, datasets in names.items()
    )
    return f"Reduced run (scale {scale}): its numbers are not those of the full study. Its data: {data}."


def with_scale(drawn: "DataFrame", scale: str, sources: Mapping[str, str]) -> "DataFrame":
    """Return a figure's numbers; those of a reduced run with the columns ``scale`` and ``data_source``.

    Args:
        drawn: a row per number; one without a column ``dataset`` is of all data sets.
        scale: as for `reduced_words`.
        sources: as for `reduced_words`.
    """
    if scale == FULL:
        return drawn
    everything = "; ".join(dict.fromkeys(sources.values()))
    source = drawn["dataset"].map(sources).fillna(everything) if "dataset" in drawn else everything
    return drawn.assign(scale=scale, data_source=source)
