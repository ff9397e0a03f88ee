"""Dates in the user's format, YYYY-MM-DD."""

from datetime import UTC, date, datetime


def this_day() -> date:
    """Return today's date, in UTC."""
    return datetime.now(UTC).date()


def day(value: object) -> date | None:
    """Return the date of a text YYYY-MM-DD, or None if the text is not a date.

    >>> day("2028-02-29"), day("2027-02-29"), day("20280229"), day(None)
    (datetime.date(2028, 2, 29), None, None, None)
    """
    try:
        named = date.fromisoformat(str(value))
    except ValueError:
        return None
    return named if named.isoformat() == value else None  # it reads 20280229, too
