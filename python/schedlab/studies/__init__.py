# SPDX-License-Identifier: MIT
"""The studies: what they published, what would be ideal, where they contradict themselves.

`pack` reads their folders, `figures` has every number, `ideal` what no scheduler can beat.
docs/studies.md tells more.
"""

from schedlab.studies.figures import (
    Figure,
    Kind,
    Source,
    all_published,
    frame,
    published,
    read_figures,
    select,
)

__all__ = [
    "Figure",
    "Kind",
    "Source",
    "all_published",
    "frame",
    "published",
    "read_figures",
    "select",
]
