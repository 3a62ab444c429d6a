"""Workers that share a PostgreSQL store, with Procrastinate as the engine that hands out work."""
