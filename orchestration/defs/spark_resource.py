"""Gives a Dagster run its Spark session: started when the first step asks for it, stopped with the run.

It takes its settings from the pipeline and not from Dagster's configuration, which the UI shows to everybody: settings
of Spark may hold the credentials of an object store.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from dagster import ResourceDefinition, resource
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.spark.session import start_session


@dataclass
class RunSpark:
    """One session for all steps of a run; a run that asks for none never starts a JVM."""

    pipeline: Pipeline
    _session: SparkSession | None = field(default=None, init=False)
    _ours: bool = field(default=False, init=False)

    def session(self) -> SparkSession:
        """Return the run's session, started at the first call. Raises what `start_session` does."""
        if self._session is None:
            self._ours = SparkSession.getActiveSession() is None
            self._session = start_session(**self.pipeline.session, idle=self.pipeline.engine.stays())
        return self._session

    def stop(self) -> None:
        """Stop the session, unless the process had it before the run: then it is somebody else's."""
        if self._session is not None and self._ours:
            self._session.stop()
        self._session = None


def spark_resource(pipeline: Pipeline) -> ResourceDefinition:
    """The resource `spark`: a `RunSpark` with the settings of a pipeline."""

    @resource(description="The Spark session that all steps of a run share")
    def spark() -> Iterator[RunSpark]:
        run = RunSpark(pipeline)
        try:
            yield run
        finally:
            run.stop()

    return spark
