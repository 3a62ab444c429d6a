"""Stores as an older anchord made them."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config

from anchord.adapters.store import database


def at_first_schema(path: Path) -> None:
    """Make an empty store as the first anchord did."""
    engine = database.connect(f"sqlite:///{path}")
    config = Config()
    folder = Path(database.__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder))
    with engine.execution_options(writes=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    engine.dispose()
