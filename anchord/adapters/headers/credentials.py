"""How a Bitcoin Core node is told who asks: its cookie file, or a user with a password file."""

from __future__ import annotations

import stat
from pathlib import Path

from anchord.adapters.disk import read_small
from anchord.errors import ConfigError, TransientError


class Cookie:
    """The .cookie that Bitcoin Core writes at each start and removes when it stops.

    Args:
        path: the file; read when first needed, and again when the node says no.
    """

    changes = True
    """A refused login is worth one more try with the file as it is now."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[str, str]:
        """Return user and password as the file holds them now.

        Raises:
            TransientError: there is no such file.
            ConfigError: it may not be read, or is not a cookie.
        """
        try:
            user, colon, password = read_small(self._path).decode().strip().partition(":")
        except FileNotFoundError:
            raise TransientError(
                f"{self._path}: expected the node's cookie, there is no such file: start the "
                "node, or correct headers.node.cookie_file if it runs"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(self._path, "headers.node.cookie_file", error) from None
        if not colon:
            raise ConfigError(
                f"{self._path}: expected user:password as Bitcoin Core writes it, found "
                "something else; correct headers.node.cookie_file"
            )
        return user, password


class Password:
    """A fixed RPC user.

    Args:
        user: as in the node's rpcauth or rpcuser.
        path: its first line is the password; refused when everybody may read it. (A group may:
            systemd hands credentials over with mode 0440.)
    """

    changes = False
    """A refused login stays refused until a person acts."""

    def __init__(self, user: str, path: Path) -> None:
        self._user = user
        self._path = path

    def read(self) -> tuple[str, str]:
        """Return user and password.

        Raises:
            ConfigError: no such file, not readable, readable by everybody, or empty.
        """
        try:
            mode = self._path.stat().st_mode
            lines = read_small(self._path).decode().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(self._path, "headers.node.password_file", error) from None
        if mode & stat.S_IRWXO:
            raise ConfigError(
                f"{self._path} is open to everybody on this machine: run chmod o= on it, "
                "and change the password if others use the machine"
            )
        if not lines or not lines[0]:
            raise ConfigError(f"{self._path}: expected the RPC password in line 1, it is empty")
        return self._user, lines[0]


def credentials(
    cookie_file: Path | None, user: str, password_file: Path | None
) -> Cookie | Password:
    """Return the one way of logging in that is configured.

    Raises:
        ConfigError: none, or both, or half of one.
    """
    if cookie_file is not None and not user and password_file is None:
        return Cookie(cookie_file)
    if cookie_file is None and user and password_file is not None:
        return Password(user, password_file)
    raise ConfigError(
        "headers.node: set either cookie_file, or user and password_file, and not both"
    )


def _unreadable(path: Path, key: str, error: Exception) -> ConfigError:
    reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
    return ConfigError(f"{path} cannot be read ({reason}): correct {key} or the permissions")
