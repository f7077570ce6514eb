"""Makes the job of Dagster that tells why a row is as it is: one op, whose launchpad asks for a result and a key."""

from typing import Any

from dagster import Config, JobDefinition, MetadataValue, OpExecutionContext, job, op
from pydantic import Field

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.orchestration.explain.explain import Question, explained
from lakejoin.transforms.model.printable_text import printable


class ExplainOptions(Config):
    """What is asked; the same as `lakejoin explain` takes."""

    result: str = Field(description="A join or groups, a table or a stream.")
    key: str = Field(description="Key of the row; a composite one is a JSON array.")
    column: str | None = Field(default=None, description="Only where the value of this column comes from.")
    as_of_batch: int | None = Field(
        default=None, description="As this batch left it; by default the last one."
    )
    impact: bool = Field(default=False, description="What is made of the row, instead of what it is made of.")


def explain_job(pipeline: Pipeline) -> JobDefinition:
    """The job; it reads the logs of the lake, beside whatever runs, and starts no Spark."""

    @op(name=f"{pipeline.name}_explain")
    def answer(context: OpExecutionContext, config: ExplainOptions) -> None:
        with told_errors():
            asked = Question(config.result, config.key, config.as_of_batch, config.column, config.impact)
            found = explained(pipeline, asked)
            for line in found.lines():
                context.log.info(printable(line))
            context.add_output_metadata(
                {
                    "answer": MetadataValue.text(printable(found.answer)),
                    "batch": MetadataValue.int(found.batch),
                    "explanation": MetadataValue.json(_printable(found.plain())),
                }
            )

    @job(name=f"{pipeline.name}_explain_row", description="Says why a row is as it is, or why there is none.")
    def explain_row() -> None:
        answer()

    return explain_row


def _printable(value: Any) -> Any:
    match value:
        case str():
            return printable(value)
        case dict():
            return {printable(name): _printable(part) for name, part in value.items()}
        case list():
            return [*map(_printable, value)]
        case _:
            return value
