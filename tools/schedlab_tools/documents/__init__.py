# SPDX-License-Identifier: MIT
"""Generates documents' pictures and pages from data. `make.py` lists the parts; each other module creates one."""
