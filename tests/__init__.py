"""The tests.  Before NumPy is imported: its threads wait for one another, on matrices this small.

Most of what some tests computed was such waiting, the more where processes share the cores.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
