# SPDX-License-Identifier: MIT
"""Files that may have been cut off, changed or made up, and places that may be replaced. It
knows no file of schedlab's by its meaning."""
