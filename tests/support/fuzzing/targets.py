"""All parsers of foreign bytes, with what they are fed."""

from __future__ import annotations

from support.fuzzing import core_targets, file_targets, fleet_targets, web_targets
from support.fuzzing.engine import Target

TARGETS: tuple[Target, ...] = (
    *core_targets.TARGETS,
    *web_targets.TARGETS,
    *file_targets.TARGETS,
    *fleet_targets.TARGETS,
)
