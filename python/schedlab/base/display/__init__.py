# SPDX-License-Identifier: MIT
"""What a person reads in a terminal, and any text made safe for where it is shown. It knows nothing
of scheduling."""
