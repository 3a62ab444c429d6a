"""Where an account's keys may go: to the archive itself, or to a stand-in on this machine."""

from __future__ import annotations

from anchord.adapters.http import base_url, is_loopback
from anchord.adapters.http.address import host_of
from anchord.errors import ConfigError


def stand_in(url: str, real: str, what: str) -> str | None:
    """Return a stand-in's address; None for the archive itself.

    Args:
        url: what the configuration says.
        real: the archive's own address.
        what: the configuration's name for it, for the message.

    Raises:
        ConfigError: neither.
    """
    address = base_url(url, what)
    if address == real:
        return None
    if is_loopback(host_of(address)):
        return address
    raise ConfigError(
        f"{what}: expected {real}, or an address on loopback for trials, got {url}; "
        "the account's keys are sent nowhere else"
    )
