"""The version of the files that steps write: an edit here makes every result anew, one of `provenance.files` none."""

FORMAT = 1  # one more wherever `provenance.files` writes other bytes, or reads other values from the same bytes
