"""`lakejoin validate`: is the configuration right? Reads one file and nothing else."""

from orchestration.cli.options import Config, load_pipeline
from orchestration.cli.terminal import say


def validate(config: Config) -> None:
    """Check the configuration file.

    Every mistake is printed with file, line and path. Neither sources nor the lake are read, and no Spark is
    started.
    """
    pipeline = load_pipeline(config)
    for name, table in pipeline.tables.items():
        source, key = table.source, ", ".join(table.key)
        say(f"table {name}: {len(table.columns)} columns, key {key}, {source.format} {source.path}")
    for name, join in pipeline.joins.items():
        foreign_key, key = ", ".join(join.foreign_key), ", ".join(pipeline.join_spec(name).left_key)
        say(f"join {name}: {join.left} {join.how} join {join.right} on {foreign_key}, key {key}")
    for expression in pipeline.unchecked_expressions:
        say(f"join {expression.join}: the type of `{expression.sql}` is checked when Spark starts")
    say(f"{config} is valid")
