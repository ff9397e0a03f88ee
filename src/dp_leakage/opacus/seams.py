"""Wrapped attributes of classes and modules through which a watch listens, until they are restored."""

from collections.abc import Callable
from functools import wraps
from typing import Any

Listener = Callable[..., None]
ABSENT = object()


class Seams:
    """Wrapped functions. Their results and errors do not change."""

    def __init__(self, guard: Callable[..., None]) -> None:
        """Start without wrapped functions. ``guard(listener, *arguments)`` calls a listener and contains its errors."""
        self.guard = guard
        self._wrapped: list[tuple[Any, str, Any, Any]] = []
        self._running: set[tuple[int, str]] = set()  # objects and functions within a nested call

    def around(
        self,
        owner: Any,
        name: str,
        *,
        before: Listener | None = None,
        after: Listener | None = None,
        concerns: Callable[[Any], bool] = lambda this: True,
    ) -> None:
        """Listen to an attribute that ``owner`` itself defines; do nothing if it does not.

        Args:
            owner: a class or a module.
            name: of a function.
            before: called with the function's arguments.
            after: called with the first argument, the result, and the other arguments.
            concerns: predicate on the first argument: whether to listen.
        """
        original = vars(owner).get(name, ABSENT)
        if original is ABSENT:
            return

        @wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            listens = concerns(args[0] if args else None)
            if listens and before:
                self.guard(before, *args, **kwargs)
            result = original(*args, **kwargs)
            if listens and after:
                self.guard(after, *args[:1], result, *args[1:], **kwargs)
            return result

        self._wrapped.append((owner, name, original, wrapped))
        setattr(owner, name, wrapped)

    def nested(self, owner: Any, name: str, *, first: Listener) -> None:
        """Listen to the outermost of nested calls, e.g. of methods that call their superclass."""
        original = vars(owner).get(name, ABSENT)
        if original is ABSENT:
            return

        @wraps(original)
        def wrapped(this: Any, *args: Any, **kwargs: Any) -> Any:
            if (call := (id(this), name)) in self._running:
                return original(this, *args, **kwargs)
            self._running.add(call)
            try:
                self.guard(first, this)
                return original(this, *args, **kwargs)
            finally:
                self._running.discard(call)

        self._wrapped.append((owner, name, original, wrapped))
        setattr(owner, name, wrapped)

    def restore(self) -> None:
        """Restore all functions, the last wrapped first, except those that others have wrapped since."""
        while self._wrapped:
            owner, name, original, wrapped = self._wrapped.pop()
            if vars(owner).get(name) is wrapped:
                setattr(owner, name, original)
