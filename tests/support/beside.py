"""A store beside which something happens between two of its questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Beside:
    """A store at whose `at`-th question something happens first."""

    def __init__(self, inner: Any, happens: Callable[[], None], at: int) -> None:
        self._inner, self._happens, self.left = inner, happens, at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return found if callable(found) else _Table(found, self)

    def asked(self) -> None:
        self.left -= 1
        if self.left == 0:
            self._happens()


class _Table:
    def __init__(self, inner: Any, store: Beside) -> None:
        self._inner, self._store = inner, store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)

        def asked(*args: Any, **kwargs: Any) -> Any:
            self._store.asked()
            return found(*args, **kwargs)

        return asked if callable(found) else found
