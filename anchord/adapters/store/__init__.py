"""The store: schema, queries, migrations."""
