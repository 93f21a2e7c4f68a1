# SPDX-License-Identifier: MIT
"""Handles untrusted policies: compiles them in a sandbox, grades and scores them, serves language models."""
