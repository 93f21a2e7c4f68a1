# SPDX-License-Identifier: MIT
"""The live model: from a trace's records to what frames show (docs/monitor.md)."""

from schedlab.monitor.model.model import Alive, InForce, Model, ModelFrame, Past

__all__ = ["Alive", "InForce", "Model", "ModelFrame", "Past"]
