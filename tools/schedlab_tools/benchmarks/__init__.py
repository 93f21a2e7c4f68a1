# SPDX-License-Identifier: MIT
"""What things cost and how fast they are: instruction counts, speeds, shares against the ideal. It
may know all machines and the monitor."""
