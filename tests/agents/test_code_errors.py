"""Whose fault an exception is."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from agents.machinery.code_errors import CodeError, failed, is_signal, read_only, told


def raised(action) -> BaseException:
    with pytest.raises(BaseException) as caught:
        action()
    return caught.value


def interrupt() -> None:
    raise KeyboardInterrupt


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def copied(action) -> None:
    """As SimPy does with what a process raises."""
    error = raised(action)
    raise type(error)(*error.args) from error


def test_ctrl_c_is_told_from_what_code_raises():
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert is_signal(raised(press))
        assert is_signal(raised(lambda: copied(press)))
    finally:
        signal.signal(signal.SIGINT, usual)
    assert not is_signal(raised(interrupt))
    assert not is_signal(raised(lambda: copied(interrupt)))
    assert not is_signal(raised(lambda: 1 / 0))


def test_an_exception_in_one_line():
    assert told(ValueError("first\nsecond")) == "ValueError: first"
    assert told(SystemExit()) == "SystemExit"
    assert told(CodeError("loss mine: value failed")) == "loss mine: value failed"
    assert len(told(ValueError(1000 * "x"))) < 350


def test_a_message_names_the_function_and_where_it_begins():
    line = interrupt.__code__.co_firstlineno
    expected = f"law mine: interrupt failed (test_code_errors.py:{line}): why"
    assert failed("law mine", interrupt, "why") == expected
    assert failed("law mine", property(interrupt), "why") == expected


def test_a_view_that_cannot_be_changed():
    numbers = np.zeros(3)
    view = read_only(numbers)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    numbers[0] = 2.0
    assert view[0] == 2.0
