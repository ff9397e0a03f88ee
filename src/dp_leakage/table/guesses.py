"""Right guesses of an attacker who is shown 100 records, half of them members: an advantage in plain numbers."""

from math import ceil

from markupsafe import Markup

STRONG, MODERATE, SAYS_LITTLE = 0.1, 0.5, 0.9  # proven advantages from which on a guarantee is called less


def of_100(advantage: float) -> int:
    """Return the number of an attacker's right guesses."""
    return round(50 + 50 * max(advantage, 0.0))


def most_of_100(advantage: float) -> int:
    """Return the maximum number of right guesses, from a proven advantage."""
    return ceil(50 + 50 * advantage - 1e-9)


def bar(measured: int | None, undefended: int | None, most: int | None) -> Markup:
    """Draw right guesses from 50 to 100: by the strongest attack, without privacy, and at most; None: not known."""

    def x(guesses: float) -> float:
        return 10 + 440 * (guesses - 50) / 50

    parts = ['<rect class="track" x="10" y="40" width="440" height="22" rx="2"/>']
    if most is not None:
        parts.append(f'<rect class="could" x="10" y="40" width="{x(most) - 10:.1f}" height="22"/>')
        parts.append(f'<line class="limit" x1="{x(most):.1f}" x2="{x(most):.1f}" y1="34" y2="68"/>')
    if measured is not None:
        parts.append(f'<rect class="did" x="10" y="40" width="{x(measured) - 10:.1f}" height="22"/>')
        parts.append(f'<text x="{max(x(measured), 10):.1f}" y="14" class="count">{measured}</text>')
        parts.append(f'<text x="{max(x(measured), 10):.1f}" y="30">measured</text>')
    if undefended is not None:
        parts.append(f'<line class="bare" x1="{x(undefended):.1f}" x2="{x(undefended):.1f}" y1="34" y2="68"/>')
        parts.append(f'<text x="{min(x(undefended), 400):.1f}" y="84">{undefended} without privacy</text>')
    if most is not None and most - (measured or 50) >= 9:  # else the names would cover each other
        anchor = "end" if most > 85 else "start"
        parts.append(f'<text x="{x(most):.1f}" y="14" class="count" text-anchor="{anchor}">{most}</text>')
        parts.append(f'<text x="{x(most):.1f}" y="30" text-anchor="{anchor}">proven limit</text>')
    parts.append('<text x="10" y="100">50: guessing</text><text x="450" y="100" text-anchor="end">100: certain</text>')
    return Markup(f'<svg viewBox="0 0 460 106" class="guesses" aria-hidden="true">{"".join(parts)}</svg>')
