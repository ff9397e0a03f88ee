"""Days, as a user writes them."""

from datetime import UTC, date, datetime


def this_day() -> date:
    """Today's date, in UTC."""
    return datetime.now(UTC).date()


def day(value: object) -> date | None:
    """The day that a text names as YYYY-MM-DD; None if it names none.

    >>> day("2028-02-29"), day("2027-02-29"), day("20280229"), day(None)
    (datetime.date(2028, 2, 29), None, None, None)
    """
    try:
        named = date.fromisoformat(str(value))
    except ValueError:
        return None
    return named if named.isoformat() == value else None  # it reads 20280229, too
