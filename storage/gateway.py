"""Makes PySpark's way to the JVM shorter: a third of a small batch's time went into building its expressions.

For every expression Py4J asks the JVM anew what `functions` is and what its member is, before it calls it. Neither ever
changes, so the answers are kept: one message instead of three.
"""

from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

_FUNCTIONS = "org.apache.spark.sql.functions"
_UTILITIES = "org.apache.spark.api.python.PythonUtils"


class _KnownClass(JavaClass):  # type: ignore[misc] # Py4J has no types
    """A Java class whose members are looked up once."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        self.__dict__[name] = member
        return member


def remember_members(spark: SparkSession) -> None:
    """Keep what PySpark looks up again and again; it asks for `functions` by two names."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the gateway is a private part of PySpark
    client = jvm._gateway_client  # noqa: SLF001
    functions = _KnownClass(_FUNCTIONS, client)
    known = {_FUNCTIONS: functions, "functions": functions, "PythonUtils": _KnownClass(_UTILITIES, client)}
    for name, value in known.items():
        setattr(jvm, name, value)
