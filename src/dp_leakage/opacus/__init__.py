"""Audits of trainings by Opacus, while they run and as they are: ``with watch() as seen: train()``.

`watch` sees what was drawn, clipped, added, applied and counted in each step, and compares it with what the script
states. `assert_private` is the same for a test.
"""

from dp_leakage.opacus.session import Watched, assert_private, watch

__all__ = ["Watched", "assert_private", "watch"]
