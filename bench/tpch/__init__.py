"""The workload: TPC-H orders and customers, change batches over them, and what their join holds after each."""
