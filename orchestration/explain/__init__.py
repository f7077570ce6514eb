"""Says why a row of a result is as it is, or is not there, from the logs that a lake keeps and without a JVM."""
