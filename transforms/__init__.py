"""The pure core: functions from DataFrames to DataFrames, without session, path, clock or action."""
