"""Limits as text: an upper bound is rounded up and a lower bound down, so that no bound is stated too tight.

Noise is calibrated by a search with a tolerance. A limit within this tolerance of a round number is written as that
number: 10.0000001 is 10, not 10.1.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from math import ceil, floor, isfinite, log10

SLACK = 1e-6  # how far a figure may lie on the wrong side (relative); never more than a hundredth of the last digit
EXACT = Context(prec=700)  # wide enough for every float


def rounded_up(value: float, digits: int, slack: float = SLACK) -> str:
    """Format an upper bound to a number of significant digits, rounded up: 1.01, 57200, 1e+06."""
    return _significant(value, digits, ROUND_CEILING, slack)


def rounded_down(value: float, digits: int, slack: float = SLACK) -> str:
    """As `rounded_up`, for a lower bound."""
    return _significant(value, digits, ROUND_FLOOR, slack)


def decimals_up(value: float, places: int) -> str:
    """Format an upper bound to a number of decimals, rounded up: 0.090."""
    return _decimals(value, places, ROUND_CEILING)


def decimals_down(value: float, places: int) -> str:
    """Format a lower bound to a number of decimals, rounded down."""
    return _decimals(value, places, ROUND_FLOOR)


def two_digits(number: float) -> int:
    """Return a number above 0 in two digits, rounded up.

    >>> two_digits(1234.0), two_digits(7.0)
    (1300, 7)
    """
    scale = 10 ** max(floor(log10(number)) - 1, 0)
    return ceil(number / scale) * scale


def _significant(value: float, digits: int, rounding: str, slack: float) -> str:
    if not isfinite(value):
        return f"{value:g}"
    exact = Decimal(repr(float(value)))
    found = _quantized(exact, exact.adjusted() - digits + 1, rounding, slack)
    return f"{float(found):.{max(digits, 6)}g}"


def _decimals(value: float, places: int, rounding: str) -> str:
    if not isfinite(value):
        return f"{value:g}"
    return f"{_quantized(Decimal(repr(float(value))), -places, rounding, SLACK):f}"


def _quantized(exact: Decimal, exponent: int, rounding: str, slack: float) -> Decimal:
    unit = Decimal(1).scaleb(exponent)
    near = exact.quantize(unit, ROUND_HALF_EVEN, EXACT)
    if abs(near - exact) <= min(Decimal(slack) * abs(exact), unit / 100):
        return near
    return exact.quantize(unit, rounding, EXACT)
