# SPDX-License-Identifier: MIT
"""Tests `--set POLICY.TUNABLE=VALUE`, which applies to one of several policies."""

from __future__ import annotations

import pytest

from schedlab.base.toolchain.policies import (
    PolicyChoice,
    check_owners,
    parse_policy_setting,
    settings_for,
)
from schedlab.errors import WrongUsage

RR, THESIS = PolicyChoice("rr"), PolicyChoice("lottery", "thesis")


def test_a_setting_may_name_its_policy() -> None:
    assert parse_policy_setting("slice=5") == ("slice", 5)
    assert parse_policy_setting("rr.slice=-5") == ("rr.slice", -5)
    assert parse_policy_setting("lottery:thesis.seed=1") == ("lottery:thesis.seed", 1)
    for wrong in ("rr.=5", ".slice=5", "rr.slice", "a.b.c=1"):
        with pytest.raises(ValueError, match=r"POLICY\.NAME=VALUE"):
            parse_policy_setting(wrong)


def test_what_names_the_policy_goes_before_what_names_none() -> None:
    """The order of the settings is irrelevant; a preset's name precedes its policy's name."""
    settings = [("lottery:thesis.slice", 3), ("lottery.slice", 2), ("slice", 1), ("rr.ticks", 9)]
    for given in (settings, settings[::-1]):
        assert settings_for(THESIS, given) == (("slice", 3),)
        assert dict(settings_for(PolicyChoice("lottery"), given)) == {"slice": 2}
        assert dict(settings_for(RR, given)) == {"slice": 1, "ticks": 9}


def test_a_policy_that_is_not_run_is_named() -> None:
    check_owners([RR, THESIS], [("rr.slice", 1), ("lottery.slice", 1), ("slice", 1)])
    with pytest.raises(WrongUsage, match=r"mlfq\.boost.*mlfq is not among the policies"):
        check_owners([RR], [("mlfq.boost", 1)])
