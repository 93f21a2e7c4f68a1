# SPDX-License-Identifier: MIT
"""Makes what the documents show: pictures, and pages that are written from data. `make.py` has the list; each of
the others makes one thing."""
