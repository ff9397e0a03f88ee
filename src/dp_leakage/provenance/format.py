"""Version of the files written by steps: an edit here reruns every step; an edit of `provenance.files` reruns none."""

FORMAT = 1  # one more wherever `provenance.files` writes other bytes, or reads other values from the same bytes
