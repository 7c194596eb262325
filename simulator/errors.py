"""Errors that the user can mend: shown without a traceback, exit code 2."""


class SimulatorError(Exception):
    """Something is wrong with what the user gave; the message says what and what is allowed."""


class ScenarioError(SimulatorError):
    """A scenario file (or an override of it) is not valid; the message has one line an error."""


class DivergenceError(SimulatorError):
    """A model stopped being finite."""


class StoreError(SimulatorError):
    """Results cannot be written or read."""


class NoOptimumError(SimulatorError):
    """The objective has no minimiser, so nothing can be measured against it."""


class MissingError(StoreError):
    """Nothing is stored there."""


class DamagedError(StoreError):
    """What is stored there is not what was written."""


class LayoutError(StoreError):
    """What is stored there has a layout that this version of the program does not read."""


class StoreWarning(UserWarning):
    """Something stored cannot be used; the message says what, why, and what is done instead."""
