"""Remembers what the JVM answered to PySpark, which takes a third off the time of a small batch.

Each column, each operator and each list of columns is a message to the JVM. Another message follows when Python forgets
the object, and others ask what a package or a class holds. None of these answers ever changes, and each batch builds
the same expressions as the one before. So the answers are kept, and the same question is not asked again. There is no
switch to do without: of the one version of PySpark that fits, tests hold kept answers against new ones.
"""

# ruff: noqa: SLF001 - the gateway is a private part of PySpark

from collections.abc import Hashable
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaObject, JavaPackage, JVMView
from pyspark.sql import SparkSession

_EXPRESSIONS = ("org.apache.spark.sql.functions", "org.apache.spark.sql.expressions.Window")
_DIFFERS = frozenset({"rand", "randn", "shuffle", "uuid"})
"""Functions of which each call is another one: Spark draws a seed."""
_LIST = ("org.apache.spark.api.python.PythonUtils", "toSeq")
_SINGLETON = "MODULE$"
_PLAIN = (str, int, bool, type(None))
"""Types of which equal values are the same; a fraction is not, zero has a negative."""
_KEPT = 20_000
"""Answers that are kept, each some 2 KiB; a batch of one join asks for some 2,500."""
_answers: dict[Hashable, Any] = {}


class _Method:
    """A method whose answer depends on its object and its arguments alone."""

    def __init__(self, member: Any) -> None:
        self._member = member

    def __call__(self, *arguments: Any) -> Any:
        keys = _key(arguments)
        if keys is None:
            return self._member(*arguments)
        key = self._member.command_header, keys
        answer = _answers.get(key)
        if answer is None:
            answer = self._member(*arguments)
            if type(answer) is JavaObject:
                answer.__class__ = _Unchanging
                if len(_answers) >= _KEPT:
                    _answers.clear()
                _answers[key] = answer
        return answer


class _Unchanging(JavaObject):  # type: ignore[misc] # Py4J has no types
    """A column, a window, or a list of them: made of nothing that changes."""

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        if type(method) is JavaMember:
            method = self._methods[name] = _Method(method)
        return method


def _key(argument: Any) -> Hashable:
    """A key that identifies an argument; None for one that may change."""
    if isinstance(argument, _Unchanging):
        return _Unchanging, argument._target_id
    if isinstance(argument, list | tuple):
        keys = tuple(map(_key, argument))
        return None if None in keys else keys
    return (type(argument), argument) if type(argument) in _PLAIN else None


class _Known:
    """The JVM, a package or a class: its packages, classes, methods and singletons are looked up once."""

    def __getattr__(self, name: str) -> Any:
        held = super().__getattr__(name)  # type: ignore[misc] # of the other base
        if type(held) in _KNOWN:
            held.__class__ = _KNOWN[type(held)]
        elif type(held) is not JavaMember and name != _SINGLETON:
            return held  # the value of a field, which another may take the place of
        self.__dict__[name] = held
        return held


class _KnownView(_Known, JVMView):  # type: ignore[misc]
    pass


class _KnownPackage(_Known, JavaPackage):  # type: ignore[misc]
    pass


class _KnownClass(_Known, JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        held = super().__getattr__(name)
        if (self._fqn in _EXPRESSIONS and name not in _DIFFERS) or (self._fqn, name) == _LIST:
            held = self.__dict__[name] = _Method(held)
        return held


_KNOWN = {JavaPackage: _KnownPackage, JavaClass: _KnownClass}


def remember_answers(spark: SparkSession) -> None:
    """Keep what PySpark asks the JVM again and again."""
    _answers.clear()  # those of another JVM
    spark._jvm.__class__ = _KnownView
    session: Any = spark._jsparkSession
    if type(session.parseDataType) is JavaMember:  # the session may be one that was begun before
        session._methods["parseDataType"] = _Method(session.parseDataType)
