"""Warnings on runs that are not the whole study on the paper's data: in figures, csv files, the page and shared
copies.

A study's titles and data set names describe the whole study. At a smaller scale the records may come from another
source, e.g. scikit-learn's digits for ``cifar100``. If the paper's data are unavailable, they may be synthetic at any
scale; then no result is compared with printed numbers.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

FULL = "paper"  # the scale of the whole study
MADE_UP = "made-up data, not compared"


def beware(scale: str, sources: Mapping[str, str], made_up: Collection[str] = ()) -> str:
    """Return the warning at the top of such a run's results; "" for the whole study on the paper's data.

    Args:
        scale: ``paper``, ``small`` or ``smoke``.
        sources: data set → name of the source of its records.
        made_up: the data sets of which the records are made up.
    """
    told = []
    if scale != FULL:
        names: dict[str, list[str]] = {}
        for dataset, source in sources.items():
            names.setdefault(source, []).append(dataset)
        data = "; ".join(
            source if datasets == [source] else f"{source} (called {', '.join(datasets)})"
            for source, datasets in names.items()
        )
        told.append(f"Reduced run (scale {scale}): its numbers are not those of the full study. Its data: {data}.")
    if made_up:
        told.append(f"{MADE_UP.capitalize()} with what is printed: {', '.join(made_up)}.")
    return " ".join(told)


def with_origin(
    drawn: "DataFrame", scale: str, sources: Mapping[str, str], made_up: Collection[str] = ()
) -> "DataFrame":
    """Return a figure's numbers with their origin.

    At a reduced scale they get the columns ``scale`` and ``data_source``, and at full scale ``data_source`` if a data
    set is synthetic.

    Args:
        drawn: a row per number. Without a column ``dataset``, every row is about all data sets.
        scale: as for `beware`.
        sources: as for `beware`.
        made_up: as for `beware`.
    """
    if scale == FULL and not made_up:
        return drawn
    told = {name: f"{source} ({MADE_UP})" if name in made_up else source for name, source in sources.items()}
    everything = "; ".join(dict.fromkeys(told.values()))
    source = drawn["dataset"].map(told).fillna(everything) if "dataset" in drawn else everything
    return drawn.assign(**({} if scale == FULL else {"scale": scale}), data_source=source)
