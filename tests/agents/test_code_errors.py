"""Whose fault an exception is."""

from __future__ import annotations

import numpy as np
import pytest

from agents.machinery.code_errors import CodeError, failed, read_only, told


def calculate() -> None:
    raise ValueError


def test_an_exception_in_one_line():
    assert told(ValueError("first\nsecond")) == "ValueError: first"
    assert told(SystemExit()) == "SystemExit"
    assert told(CodeError("loss mine: value failed")) == "loss mine: value failed"
    assert len(told(ValueError(1000 * "x"))) < 350


def test_a_message_names_the_function_and_where_it_begins():
    line = calculate.__code__.co_firstlineno
    expected = f"law mine: calculate failed (test_code_errors.py:{line}): why"
    assert failed("law mine", calculate, "why") == expected
    assert failed("law mine", property(calculate), "why") == expected


def test_a_view_that_cannot_be_changed():
    numbers = np.zeros(3)
    view = read_only(numbers)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    numbers[0] = 2.0
    assert view[0] == 2.0
