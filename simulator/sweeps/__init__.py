"""Many runs: plans, workers, comparisons, tables."""
