# SPDX-License-Identifier: MIT
"""`./schedlab demo`: the page that stands alone, by Python's standard library."""
