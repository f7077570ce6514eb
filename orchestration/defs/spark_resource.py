"""Gives a Dagster run its Spark session: started when the first step asks for it, stopped with the run.

It takes its settings from the pipeline and not from Dagster's configuration, which the UI shows to everybody: settings
of Spark may hold the credentials of an object store.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dagster import AssetExecutionContext, OpExecutionContext, ResourceDefinition, resource
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.storage.spark.session import SessionUnusable, session_beside, start_session


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


def spark_resources(embedded: EmbeddedPipeline) -> Mapping[str, ResourceDefinition]:
    """The resource that a pipeline brings: a `RunSpark` with its settings; none where the project has one for it."""
    if embedded.spark is not None:
        return {}

    @resource(description="The Spark session that all steps of a run share")
    def spark() -> Iterator[RunSpark]:
        run = RunSpark(embedded.pipeline)
        try:
            yield run
        finally:
            run.stop()

    return {embedded.spark_key: spark}


def session_of(
    context: AssetExecutionContext | OpExecutionContext, embedded: EmbeddedPipeline
) -> SparkSession:
    """The session of a run: the pipeline's, or one of ours beside the project's. Raises as these do."""
    given = getattr(context.resources, embedded.spark_key)
    if isinstance(given, RunSpark):
        return given.session()
    session = getattr(given, "spark_session", given)
    if not isinstance(session, SparkSession):
        raise SessionUnusable(
            f"The resource {embedded.spark_key!r} is no Spark session: found {type(given).__name__}, expected a "
            "pyspark.sql.SparkSession, or an object whose `spark_session` is one, as dagster_pyspark.PySparkResource."
        )
    return session_beside(session, embedded.pipeline.spark.conf)
