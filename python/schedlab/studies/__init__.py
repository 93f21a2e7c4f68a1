# SPDX-License-Identifier: MIT
"""Provides the studies: published figures, ideal values and contradictions.

`pack` reads their folders, `figures` contains every number, and `ideal` the bounds for any
scheduler. See docs/studies.md.
"""

from schedlab.studies.figures import (
    Figure,
    Kind,
    Source,
    frame,
    published,
    read_figures,
    select,
)

__all__ = [
    "Figure",
    "Kind",
    "Source",
    "frame",
    "published",
    "read_figures",
    "select",
]
