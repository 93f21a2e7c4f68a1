# SPDX-License-Identifier: MIT
"""The five studies: what they published, what would be ideal, where they contradict themselves.

`figures` holds every number, `drawings` what their figures draw, `ideal` what no scheduler
can beat, `contradictions` what does not fit together. docs/studies.md tells more.
"""

from schedlab.studies.figures import (
    PUBLISHED,
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
    "PUBLISHED",
    "Figure",
    "Kind",
    "Source",
    "all_published",
    "frame",
    "published",
    "read_figures",
    "select",
]
