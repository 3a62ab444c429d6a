"""One file per outside thing; adapters never import each other or the engine."""
