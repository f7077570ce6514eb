"""Looks at what Spark is started with: Java, its options, JARs, the archive, and the JVMs that stay between runs."""

import os
from collections.abc import Iterator

from lakejoin.orchestration.config.pipeline import SessionArguments
from lakejoin.orchestration.health.finding import Finding
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.spark.engine.sockets import NoFolder, answers, engine_folder
from lakejoin.storage.spark.jars import JarsNotFound, cache_directory
from lakejoin.storage.spark.java import CollectorRefused, Java, JavaNotFound, check_collector, find_java
from lakejoin.storage.spark.start import prepare, settings, told_options


def of_java(session: SessionArguments) -> Iterator[Finding]:
    """Yield what is found of the Java that a run would take, and of all that depends on it."""
    try:
        java = find_java(os.environ)
    except JavaNotFound as error:
        yield Finding("Java", "wrong", " ".join(line.strip() for line in error.lines))
        return
    yield Finding("Java", "ok", f"{'.'.join(map(str, java.version))}, {java.path}")
    yield _collector(java, session)
    yield from _jars_and_archive(session)


def driver_memory(session: SessionArguments) -> str:
    """Return the heap that a session asks for, as Spark writes sizes."""
    return _settings(session)["spark.driver.memory"]


def engines() -> Finding:
    """Look at the JVMs that stay between runs."""
    try:
        told = [answer for _, answer in answers(engine_folder(cache_directory(os.environ)), "status")]
    except NoFolder as error:
        return Finding("engine", "warning", f"none can stay between runs: {' '.join(error.lines)}")
    busy = sum(answer["client"] is not None for answer in told)
    said = f"{len(told)} stay between runs, {busy} of them at work" if told else "none runs; a run starts one"
    return Finding("engine", "ok", said)


def _settings(session: SessionArguments) -> dict[str, str]:
    return settings(session["master"], (), cache_directory(os.environ), session["conf"])


def _collector(java: Java, session: SessionArguments) -> Finding:
    try:
        check_collector(java, told_options(_settings(session)))
    except CollectorRefused as error:
        return Finding("collector", "wrong", " ".join(error.lines))
    return Finding("collector", "ok", "none that this Java corrupts data with")


def _jars_and_archive(session: SessionArguments) -> Iterator[Finding]:
    try:
        start = prepare(**session, fetches=False)
    except JarsNotFound as error:
        said = f"{' '.join(error.lines)} are not there; the first run fetches them, for which it needs the network"
        yield Finding("JARs", "warning", said)
        return
    except LakejoinError:
        return  # of the collector, which is told already
    yield Finding("JARs", "ok", f"all are in {start.cache}")
    if not start.is_local:
        yield Finding(
            "archive", "ok", f"none is used, for the master {start.settings['spark.master']} is a cluster"
        )
        return
    is_there = start.archive.option is not None
    said = str(start.archive.path) if is_there else "none; `lakejoin warm` makes one, and JVMs start sooner"
    yield Finding("archive", "ok", said)
