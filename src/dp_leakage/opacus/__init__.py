"""Audit of private trainings by Opacus while they run: ``with watch() as seen: train()``.

`watch` compares each step's batch, clipping, noise, update and accounting with what the script states. `assert_private`
does so in a test.
"""

from dp_leakage.opacus.session import Watched, assert_private, watch

__all__ = ["Watched", "assert_private", "watch"]
