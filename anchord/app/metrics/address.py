"""Where something is served: loopback unless somebody says otherwise."""

from __future__ import annotations

import ipaddress

from anchord.errors import ConfigError

_LOOPBACK = "127.0.0.1"


def host_and_port(text: str, key: str = "service.metrics") -> tuple[str, int]:
    """Read `HOST:PORT`, `[IPv6]:PORT`, or a port on loopback alone.

    A host is an IP address or `localhost`: a name would be whatever a name server makes of it.

    Args:
        text: as it was configured.
        key: the key it stands in, for the message.

    Raises:
        ConfigError: it is something else.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    host = _LOOPBACK if host in ("", "localhost") else host
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise _wrong(text, key) from None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 1 << 16):
        raise _wrong(text, key)
    return host, int(port)


def _wrong(text: str, key: str) -> ConfigError:
    return ConfigError(
        f"{key}: expected an IP address and a port, e.g. 127.0.0.1:9464, or nothing; "
        f"got {text!r:.60}"
    )
