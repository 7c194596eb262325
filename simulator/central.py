"""A central solver for a graph's smoothness plus the agents' losses, which sees all of them at once.

    minimise over Θ (n, p)   ½ Σ_ij K_ij θ_i·θ_j + Σ_k b_k ℓ(x_k·θ_{i(k)}, y_k)

with a sparse positive semidefinite K (n, n) and M points, the k-th one belonging to agent i(k).
Nothing here is shared with the agents' ADMM, so that one may be checked against the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg

from agents.losses import Floats, Kinked, Loss, design
from simulator.errors import SimulatorError

#: Residuals of the optimality conditions, relative to the size of the terms in them.
TOLERANCE = 1e-10
OUTER_LIMIT = 200
NEWTON_LIMIT = 200


def minimise(
    K: csr_array, loss: Loss, X: Floats | None, y: Floats, owner: NDArray[np.int64], b: Floats
) -> Floats:
    """The minimiser (n, p); one of them where there are several."""
    if isinstance(loss, Kinked):
        Z, t, low = loss.boxed(X, y)
        return _method_of_multipliers(_System(K, Z, owner), t, low * b, b)
    return _newton(_System(K, design(X, y), owner), loss, y, b)
