# SPDX-License-Identifier: MIT
"""Tests schedlab's distributions against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from schedlab.analysis.comparison.distributions import (
    normal_cdf,
    normal_quantile,
    student_t_cdf,
    student_t_quantile,
)

REACH = np.concatenate([-np.logspace(-6, 4, 200), [0.0], np.logspace(-6, 4, 200)])


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 4.7, 15, 99, 999, 1e5])
def test_students_t(freedom: float) -> None:
    np.testing.assert_allclose(
        student_t_cdf(freedom, REACH), special.stdtr(freedom, REACH), rtol=2e-9, atol=1e-300
    )
    for p_value in (0.5, 0.9, 0.975, 0.9999):
        assert student_t_quantile(freedom, p_value) == pytest.approx(
            special.stdtrit(freedom, p_value), rel=1e-10, abs=1e-15
        )


def test_the_normal_distribution() -> None:
    values = np.linspace(-30, 8, 300)
    np.testing.assert_allclose(normal_cdf(values), special.ndtr(values), rtol=1e-12)
    chances = np.linspace(1e-9, 1 - 1e-9, 300)
    np.testing.assert_allclose(
        normal_quantile(chances), special.ndtri(chances), rtol=1e-12, atol=1e-12
    )
