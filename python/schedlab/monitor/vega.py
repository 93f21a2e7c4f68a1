# SPDX-License-Identifier: MIT
"""Vega for the page: made by vl-convert, which is in the house for reports, so that no Node.js is
needed."""

from __future__ import annotations

from functools import cache

from schedlab.report.html import bundle

_EXPORT = "Object.assign(globalThis, { vega, vegaLite, vegaEmbed });\n"
"""Modules of the page find the libraries by these names; `vegaEmbed` with `ast: true` needs no
compiled code."""


@cache
def vega_script() -> bytes:
    """Kept between starts, since to put it together takes seconds; and once for all that ask for it."""
    return bundle("vega", _EXPORT).encode()
