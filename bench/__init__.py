"""The benchmark: a workload with known answers, and a race against recomputing the join."""
