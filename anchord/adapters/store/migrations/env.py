"""Alembic's entry point: runs migrations on the connection it is handed."""

from alembic import context

from anchord.adapters.store.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata)
context.run_migrations()
