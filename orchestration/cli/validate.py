"""Runs `lakejoin validate`: checks a configuration file, and reads nothing else."""

from lakejoin.orchestration.cli.options import Config, load_pipeline
from lakejoin.orchestration.cli.terminal import say


def validate(config: Config) -> None:
    """Check the configuration file.

    Every mistake is printed with file, line and path. Neither sources nor the lake are read, and no Spark is
    started.
    """
    from lakejoin.transforms.model.group_spec import GroupSpec

    pipeline = load_pipeline(config)
    for name, read in pipeline.inputs.items():
        source, key = read.source, ", ".join(read.key)
        kind = "stream" if name in pipeline.streams else "table"
        say(f"{kind} {name}: {len(read.columns)} columns, key {key}, {source.format} {source.place}")
    for name in pipeline.joins:
        join = pipeline.spec_of_join(name)
        if isinstance(join, GroupSpec):
            made = "adjusted by what changes" if join.adjusts else "computed from their rows"
            say(f"groups {name}: {join.left} by {', '.join(join.joined_key)}, {made}")
            continue
        rights = " ".join(
            f"{part.how} join {part.right} on {', '.join(texts)}"
            for part, _, texts in pipeline.foreign_keys(name)
        )
        say(f"join {name}: {join.left} {rights}, key {', '.join(join.joined_key)}")
    for join_name, sql in pipeline.unchecked_expressions:
        say(f"join {join_name}: the type of `{sql}` is checked when Spark starts")
    say(f"{config} is valid")
