# SPDX-License-Identifier: MIT
"""The pages of the studies."""
