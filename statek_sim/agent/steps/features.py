"""What a plan of steps may ask of its enforcer."""

from __future__ import annotations

from enum import StrEnum


class Feature(StrEnum):
    """What a plan may ask of an enforcer."""

    ORDERED = "ordered"
    ANY_ORDER = "any_order"
    REPEATED = "repeated"
    OPTIONAL = "optional"
    HELPERS = "helpers"
    NAMED_HELPERS = "named_helpers"
    PREREQUISITES = "prerequisites"
    SIDE_BY_SIDE = "side_by_side"
