"""``dp-leakage list``: the studies, or the figures of one."""

from collections.abc import Sequence

from dp_leakage.commands.studies import figures_of, line_of, studies_here
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.options.listing import parser


def main(words: Sequence[str]) -> int:
    """Print the studies or figures. Raises UserError for an unknown study."""
    study, known = parser().parse_args(words).study, studies_here()
    if not study:
        width = max(map(len, known))
        print("\n".join(f"{name:<{width}}  {line_of(path, 'title')}".rstrip() for name, path in known.items()))
        return 0
    if study not in known:
        raise UserError(f"no study is called {study!r}; {nearest(study, known)}")
    print("\n".join(f"{study}:{figure}" for figure in figures_of(known[study])))
    return 0
