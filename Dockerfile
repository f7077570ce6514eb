# syntax=docker/dockerfile:1
# An image for `docker run`, with the command line as its entry point. `--target dagster` makes the same without an entry
# point, for Dagster's services: what starts them names the command.

FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN python -m venv /opt/lakejoin \
    && /opt/lakejoin/bin/pip install --no-cache-dir ".[kafka,kubernetes]"

FROM python:3.11-slim AS dagster
COPY --from=build /opt/lakejoin /opt/lakejoin
# Java comes with the packages; Spark asks the system for the name of its user.
RUN useradd --create-home --uid 1000 lakejoin \
    && install --directory --owner lakejoin --group lakejoin /lake
ENV PATH=/opt/lakejoin/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LAKEJOIN_CONFIG=/pipeline/lakejoin.yaml \
    DAGSTER_HOME=/lake/_dagster
USER 1000
WORKDIR /lake
# As the user who runs it: Delta's JARs are fetched, and an archive is kept of what Java loads. Then the settings that
# `lakejoin dev` makes: no telemetry, and runs of a pipeline wait for one another.
RUN lakejoin warm \
    && python -c "from pathlib import Path; from lakejoin.orchestration.cli.dev import prepare_home; prepare_home(Path('$DAGSTER_HOME'))"
VOLUME /lake

FROM dagster
ENTRYPOINT ["lakejoin"]
CMD ["--help"]
