"""Dying at the k-th effect: wrappers around store, calendars and signer, from the outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anchord.engine.parts import Parts

WRITING = {
    "batches": ("seal", "change"),
    "calls": (
        "intend",
        "resubmit",
        "store_answer",
        "postpone_submission",
        "store_upgrade",
        "postpone_pending",
    ),
    "ledger": ("append", "split"),
    "log": ("add",),
    "tokens": ("store", "postpone", "intend"),
}


class Killed(BaseException):
    """The process is gone: nothing of it runs on."""


class Fuse:
    """Burns down by one before and after each effect; at zero, `die` is called.

    After that every further effect dies, too: a killed process does nothing more.
    """

    def __init__(self, left: int, die: Callable[[], None]) -> None:
        self.left = left
        self.burnt = 0
        self.names: list[str] = []
        self._die = die

    def __call__(self, name: str) -> None:
        self.burnt += 1
        self.names.append(name)
        if self.burnt >= self.left:
            self._die()

    def guard(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` with this fuse before and behind it."""

        def guarded(*args: Any, **kwargs: Any) -> Any:
            self(f"before {name}")
            result = function(*args, **kwargs)
            self(f"after {name}")
            return result

        return guarded


class Wrapped:
    """Something whose methods named are guarded, and which is otherwise what it was."""

    def __init__(self, inner: Any, fuse: Fuse, names: tuple[str, ...], title: str = "") -> None:
        self._inner = inner
        for name in names:
            setattr(self, name, fuse.guard(f"{title}{name}", getattr(inner, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class WrappedStore:
    """A store whose writing methods are guarded."""

    def __init__(self, store: Any, fuse: Fuse) -> None:
        self._store = store
        for table, names in WRITING.items():
            setattr(self, table, Wrapped(getattr(store, table), fuse, names, f"{table}."))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def with_fuse(parts: Parts, fuse: Fuse) -> Parts:
    """Return parts that die at the fuse's moment."""
    replaced: dict[str, Any] = {
        "store": WrappedStore(parts.store, fuse),
        "calendars": [Wrapped(c, fuse, ("submit", "upgrade")) for c in parts.calendars],
        "headers": [Wrapped(h, fuse, ("refresh", "header")) for h in parts.headers],
        "signer": Wrapped(parts.signer, fuse, ("sign", "sign_note")),
        "authorities": [Wrapped(a, fuse, ("stamp",)) for a in parts.authorities],
    }
    names = [name for name in parts.__struct_fields__ if name not in replaced]
    return parts.__class__(**{name: getattr(parts, name) for name in names}, **replaced)


def die_by_exception() -> None:
    """Die as far as one process can do that to itself and live."""
    raise Killed
