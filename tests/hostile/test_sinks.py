"""Every place where a text leaves for a terminal, a log, Dagster or a page is listed here, and tried."""

import html
import io
import json
import logging
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterInstance, Failure
from rich.console import Console

from faults.shop import CONFIGURATION as SHOP
from faults.shop import make_pipeline
from hostile.sinks import find_sinks
from hostile.texts import LONG, TEXTS, unseen
from lakejoin.expectations.data_docs import DataDocs
from lakejoin.expectations.index_page import Page, render_index
from lakejoin.expectations.overview import Expected, Overview, Read, Standing
from lakejoin.expectations.results import RuleResult
from lakejoin.orchestration import cli
from lakejoin.orchestration.checks.check_lake import Checked
from lakejoin.orchestration.checks.figures import Figure
from lakejoin.orchestration.cli import terminal
from lakejoin.orchestration.cli.check import print_checked
from lakejoin.orchestration.cli.demo import _print_comparison
from lakejoin.orchestration.cli.exit_codes import Commands
from lakejoin.orchestration.config.schema.expect import Bound
from lakejoin.orchestration.defs import (
    asset_checks,
    assets,
    explain_job,
    lag_checks,
    maintenance_job,
    published_sensor,
    source_assets,
)
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.orchestration.demo.csv_comparison import Comparison
from lakejoin.orchestration.explain.explanation import Explanation, Finding
from lakejoin.orchestration.explain.page import render_page
from lakejoin.orchestration.maintenance.maintain import Done
from lakejoin.orchestration.maintenance.steps import Step
from lakejoin.orchestration.planning.backlog import Backlog
from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.spark.archive import Archive
from lakejoin.storage.spark.engine import keeper
from lakejoin.storage.spark.engine.launch import Launch

DATA = {
    "expectations/index_page.py:_status: HTML": "a word of the code",
    "orchestration/cli/__init__.py:_version: typer.echo": "the version of the package",
    "orchestration/config/docs/reference.py:main: sys.stdout.write": "paths of the project",
    "orchestration/defs/asset_checks.py:_judged: AssetCheckResult": "texts of the code",
    "orchestration/defs/asset_checks.py:_judged: MetadataValue.text": "numbers of batches",
    "orchestration/defs/asset_checks.py:_nothing_to_check: AssetCheckResult": "texts of the code",
    "orchestration/defs/asset_checks.py:_rule_result: MetadataValue.path": "a path, which is opened",
    "orchestration/defs/asset_checks.py:_rule_result: MetadataValue.text": "numbers of batches",
    "orchestration/defs/asset_checks.py:rule_checks: AssetCheckSpec": "statements of the rules",
    "orchestration/defs/asset_specs.py:_columns: TableColumn": "names of the configuration",
    "orchestration/defs/asset_specs.py:asset_spec: AssetSpec": "names of the configuration; the lake's path, exact",
    "orchestration/defs/assets.py:_standing: AssetMaterialization": "numbers and names of the configuration",
    "orchestration/defs/assets.py:_results: MaterializeResult": "numbers and names of the configuration",
    "orchestration/defs/assets.py:_results: context.add_asset_metadata": "numbers and names of the configuration",
    "orchestration/defs/code_location.py:_nightly_check: define_asset_job": "names of the configuration",
    "orchestration/defs/code_location.py:pipeline_definitions: define_asset_job": "names of the configuration",
    "expectations/overview.py:_bar: HTML": "numbers",
    "orchestration/defs/dangling_checks.py:_metadata: MetadataValue.text": "a bound of the configuration",
    "orchestration/defs/lag_checks.py:_result: MetadataValue.text": "a bound of the configuration",
    "orchestration/defs/lag_checks.py:lag_checks: AssetCheckSpec": "a bound of the configuration",
    "orchestration/defs/verified_checks.py:_nothing: AssetCheckResult": "texts of the code",
    "orchestration/defs/verified_checks.py:_result: AssetCheckResult": "what `_said` says, numbers and `sample_table`",
    "orchestration/defs/quarantine_checks.py:intake_checks: AssetCheckSpec": "a bound of the configuration",
    "orchestration/defs/dangling_checks.py:_result: AssetCheckResult": "numbers and texts of the code",
    "orchestration/defs/maintenance_job.py:_observations: AssetObservation": "numbers and names of tables",
    "orchestration/defs/maintenance_job.py:module: TableColumn": "texts of the code",
    "orchestration/defs/materializations.py:beside: AssetMaterialization": "numbers and names of the configuration",
    "orchestration/defs/op_checks.py:evaluation: AssetCheckEvaluation": "what a check has found, as it says it",
    "orchestration/defs/published_sensor.py:_only: SkipReason": "texts of the code",
    "orchestration/defs/source_assets.py:_newest: MetadataValue.timestamp": "a time",
    "orchestration/defs/source_assets.py:_specs: AssetSpec": "names of the configuration; the place is printable",
    "orchestration/defs/source_assets.py:observations: AssetObservation": "what `_newest` says, and numbers",
    "orchestration/defs/quarantine_checks.py:_result: AssetCheckResult": "numbers and reasons of the code",
}
"""Sinks of data that nobody but the code and the author of the configuration decides, and why."""
TRIALS: dict[str, tuple[str, ...]] = {}
"""The sinks that each trial tries."""
Trial = Callable[..., None]


def tries(*sinks: str) -> Callable[[Trial], Trial]:
    """Say which sinks a test tries."""

    def listed(trial: Trial) -> Trial:
        TRIALS[trial.__name__] = sinks
        return trial

    return listed


def test_every_sink_is_listed_and_tried() -> None:
    """A new one has to come through `printable` where it stands, or to be tried here."""
    tried = [sink for sinks in TRIALS.values() for sink in sinks]

    assert sorted([*tried, *DATA]) == find_sinks()


@pytest.fixture(params=[40, 200])
def screen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what a terminal shows, a narrow one and a wide one, in which Rich itself writes no sequences."""
    text = io.StringIO()
    out = Console(
        file=text, force_terminal=True, width=request.param, color_system=None, highlight=False, markup=False
    )
    monkeypatch.setattr(terminal, "console", lambda file=None: out)
    return text


@tries(
    *["orchestration/cli/terminal.py:print_rows: out.print"] * 3,
    *["orchestration/cli/terminal.py:print_table: out.print"] * 2,
    "orchestration/cli/terminal.py:_table: table.add_column",
    "orchestration/cli/terminal.py:_table: table.add_row",
)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_terminal_shows_tables_and_lines(text: str, screen: io.StringIO) -> None:
    """Names of columns, cells, titles and lines, in a frame and without one."""
    terminal.say(text)
    terminal.print_table(text, ["name", text], [(text, 1), ("b", 2)])
    terminal.print_rows(terminal.console(), [text, "b"], [[text, None], ["a", text]])
    terminal.print_counts(text, text, {text: {text: 1}}, {text: True})

    assert unseen(screen.getvalue()) == []
    assert len(screen.getvalue()) < 20 * LONG


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_plain_output_is_a_line_a_text(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no terminal is, no text makes a second line, which could look like one of ours."""
    terminal.say(text)
    terminal.complain(f"warning: {text}")
    terminal.print_table("title", [text], [(text,)])
    terminal.print_rows(terminal.console(), [text], [[text]])

    said = capsys.readouterr()
    assert unseen(said.out + said.err) == []
    assert (len(said.out.splitlines()), len(said.err.splitlines())) == (6, 1)


def test_markup_of_rich_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither colours nor links nor emojis are read out of a text."""
    terminal.print_rows(terminal.console(), ["[b]n[/b]"], [["[link=http://evil.test]x[/link] :smile:"]])

    assert capsys.readouterr().out == "[b]n[/b]\n[link=http://evil.test]x[/link] :smile:\n"


@tries("orchestration/cli/terminal.py:progress_bar: progress.add_task")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_bar_shows_what_is_done(text: str, screen: io.StringIO) -> None:
    """Behind the bar's own sequences, which move the cursor, stands the stage."""
    drawn = re.compile(r"\x1b\[(\?25[lh]|[0-9]*[AK])|\r|\u2800|[\u2801-\u28ff]")
    with terminal.progress_bar(text, 1) as bar:
        bar.describe(text)
        bar.advance()

    shown = drawn.sub("", screen.getvalue())
    assert unseen(shown) == []
    assert "red" not in text or "red" in shown


@tries("orchestration/cli/terminal.py:say_json: typer.echo")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_json_stays_exact(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A program reads what the name is; JSON's own escapes keep a terminal safe."""
    terminal.say_json({"file": text})

    said = capsys.readouterr().out
    assert json.loads(said) == {"file": text}
    assert set(unseen(said)) <= {"\x7f"}


@tries("orchestration/cli/terminal.py:say_data: sys.stdout.buffer.writelines")
def test_data_are_exact_for_a_program_and_printable_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CSV and JSON lines go byte by byte into a file or a pipe; of no line anything is left out."""
    lines = [f"{text.replace(chr(0xD800), '')}\r\n" for text in TEXTS]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
        terminal.say_data(lines)
        assert sys.stdout.buffer.getvalue() == "".join(lines).encode()  # type: ignore[attr-defined]

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    terminal.say_data(lines)

    said = capsys.readouterr().out
    assert unseen(said) == []
    assert "x" * LONG in said
    assert len(said.splitlines()) == len(lines)


@tries("storage/spark/engine/keeper.py:_log: print")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_log_of_an_engine_is_printable(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong with a JVM may name a folder or a value."""
    keeper._log(f"first\n{text}")

    assert unseen(capsys.readouterr().err) == []


@tries("storage/spark/archive.py:option: logger.warning")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_line_on_an_archive_is_printable(text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The folder of a cache has any name that a user's environment gives it."""
    name = "".join(sign for sign in text if sign not in "/\0" and not "\ud800" <= sign <= "\udfff")[:60]
    path = tmp_path / f"x{name}" / "archive.aot"
    path.parent.mkdir()
    path.with_suffix(".json").touch()

    assert Archive(path, Launch("", {}, {}, (), ())).option is None

    assert unseen(caplog.messages[0]) == []


@tries("orchestration/cli/terminal.py:complain_lines: typer.echo")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_unexpected_error_keeps_a_printable_traceback(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message of an exception, and what is logged by any package, are shown as everything else."""

    def broken(**_: object) -> None:
        # one that pytest does not listen to
        logger = logging.Logger("somebody")
        logger.warning("%s", text)
        raise ValueError(text)

    left: list[int] = []
    monkeypatch.setattr(cli, "app", broken)
    monkeypatch.setattr(cli, "_leave", left.append)
    handler = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging, "lastResort", handler)

    cli.main()

    said = capsys.readouterr().err
    assert left == [1]
    assert unseen(said) == []
    assert "Traceback" in said
    assert "ValueError: " in said


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_error_has_the_lines_it_was_made_of(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line's end in a name makes no line that could pass for one of ours."""

    def failing(*_: object) -> None:
        raise SourceBroken(f"{text}: cannot be read", "Write it anew.")

    commands = Commands(commands={})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.core.TyperGroup.invoke", failing)
        with pytest.raises(Exception, match=r"^1?$"):
            commands.invoke(None)

    said = capsys.readouterr().err
    assert unseen(said) == []
    assert len(said.splitlines()) == 2
    assert said.endswith(": cannot be read\nWrite it anew.\n")


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_offending_rows_and_differences_are_shown(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What `check` and `demo` print of rows, of errors and of Data Docs that could not be written."""
    results = {"orders": [_result(text), _result(text, error=text)]}
    print_checked(Checked(results, DataDocs(Path("docs")), None, 1, [text], unpublished=text))
    _print_comparison(Comparison("left", 1, 1, 1, 1, (text,)))

    said = capsys.readouterr()
    assert unseen(said.out + said.err) == []


@tries(
    "orchestration/defs/asset_checks.py:_rule_result: AssetCheckResult",
    "orchestration/defs/asset_checks.py:sample_table: MetadataValue.table",
    "orchestration/defs/asset_checks.py:sample_table: TableColumn",
    "orchestration/defs/asset_checks.py:sample_table: TableRecord",
)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_check_of_dagster_shows_rows_as_text(text: str) -> None:
    """Rows are a table of texts; in a description, which is read as Markdown, they are code."""
    row = json.dumps({"primary_key": {text: text}, text: text})
    for result in (_result(row), _result(row, error=text)):
        description = asset_checks._verdict(result)
        assert unseen(description) == []
        assert "\n" not in description
        assert _outside_code(description) in {"1 rows offend it, such as ", "Could not be checked: "}
    table = asset_checks.sample_table([row])
    cells = [*table.records[0].data, *table.records[0].data.values(), *[c.name for c in table.schema.columns]]
    assert [unseen(str(cell)) for cell in cells] == [[]] * len(cells)


@tries(
    "orchestration/defs/maintenance_job.py:_metadata: MetadataValue.table",
    "orchestration/defs/maintenance_job.py:_metadata: TableRecord",
    "orchestration/defs/maintenance_job.py:work: context.add_output_metadata",
)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_steps_of_maintenance_say_why_they_are_left(text: str) -> None:
    """The reason is the message of an error."""
    finding = SimpleNamespace(due=True, any=True, why="")
    done = Done(Step("vacuum", "tables/orders/changes", finding), skipped=text, failed=True)

    (record,) = maintenance_job._metadata([done])["steps"].records
    assert unseen(record.data["left_for_later"]) == []


@tries(
    "orchestration/defs/maintenance_job.py:work: Failure",
    "orchestration/defs/told_errors.py:failure: Failure",
    "orchestration/defs/told_errors.py:told_errors: Failure",
)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize("kind", [SourceBroken, ValueError])
def test_failure_of_dagster_is_printable_with_its_causes(text: str, kind: type[Exception]) -> None:
    """Dagster shows and logs the message of what was raised, and of what that came from."""

    def work() -> None:
        try:
            raise OSError(text)
        except OSError as cause:
            raise kind(f"{text}: cannot be read") from cause

    with pytest.raises((Failure, ValueError)) as raised, told_errors():
        work()

    error: BaseException | None = raised.value
    while error is not None:
        assert [line for line in str(error).expandtabs().split("\n") if unseen(line)] == []
        assert unseen(getattr(error, "description", None) or "") == []
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@tries(
    *["expectations/index_page.py:_asset: HTML"] * 3,
    *["expectations/index_page.py:_rule: HTML"] * 2,
    "expectations/index_page.py:render_index: HTML",
    *["expectations/overview.py:render_overview: HTML"] * 2,
    "expectations/overview.py:_standing: HTML",
    "expectations/overview.py:_expected: HTML",
    "expectations/overview.py:_trend: HTML",
)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_index_of_data_docs_shows_texts(text: str) -> None:
    """No tag and no attribute comes from a name, a row or a message."""
    pages = [Page(text, text, text, [_result(text), _result(text, error=text)])] * 2
    plain = [Page("n", "n", "n", [_result("n"), _result("n", error="n")])] * 2

    page = render_index({text: pages}, _overview(text))

    assert unseen(page) == []
    tag = re.compile(r"<[^>]*>")
    blank = re.compile(r'(id|href)="[^"]*"')
    assert [blank.sub("", found) for found in tag.findall(page)] == [
        blank.sub("", found) for found in tag.findall(render_index({"n": plain}, _overview("n")))
    ]


@tries(
    "orchestration/defs/assets.py:_observe: context.log.warning",
    "orchestration/defs/published_sensor.py:_observed: context.log.warning",
    "orchestration/defs/source_assets.py:_newest: MetadataValue.text",
)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_sources_are_observed_in_printable_words(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of their newest file, and why they cannot be listed."""
    warned: list[str] = []
    context = SimpleNamespace(log=SimpleNamespace(warning=warned.append), instance=None)
    embedded = EmbeddedPipeline(make_pipeline(tmp_path, SHOP))
    file = FoundFile(text, text, None, 1, 1)
    listed = Backlog((), None, (), newest={"orders": file})

    def refuse(*_: object, **__: object) -> None:
        raise SourceBroken(text)

    monkeypatch.setattr(source_assets, "unasked_backlog", refuse)
    assets._observe(context, embedded)
    published_sensor._observed(context, embedded)
    newest = source_assets._newest("orders", listed)["newest"].value

    assert [unseen(shown) for shown in (*warned, newest)] == [[], [], []]


@tries("orchestration/defs/lag_checks.py:_result: AssetCheckResult")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_check_of_dagster_says_why_a_lag_is_unknown(text: str) -> None:
    """In printable words, in which a source cannot be listed."""
    figure = Figure("orders", "lag", None, f"unknown: {text}", Bound.at_most(0))
    found = lag_checks._result(AssetCheckKey(AssetKey("orders"), "lag"), figure)
    assert unseen(found.description or "") == []


@tries(
    "orchestration/defs/explain_job.py:answer: MetadataValue.json",
    "orchestration/defs/explain_job.py:answer: context.add_output_metadata",
)
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_explanation_in_dagster_is_printable(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the log and in the metadata of its run."""
    found = Explanation(
        text, [text, None], 1, True, text, (Finding(text, {text: [text]}, (Finding(text),)),), (text,)
    )
    monkeypatch.setattr(explain_job, "explained", lambda *_: found)
    asked = explain_job.explain_job(make_pipeline(tmp_path, SHOP))
    config = {"ops": {"shop_explain": {"config": {"result": "orders", "key": "1"}}}}

    with DagsterInstance.ephemeral() as instance:
        done = asked.execute_in_process(run_config=config, instance=instance)
        logged = [entry.message for entry in instance.all_logs(done.run_id)]

    (event,) = [event for event in done.all_events if event.event_type_value == "STEP_OUTPUT"]
    metadata = event.step_output_data.metadata
    assert set(metadata) == {"answer", "batch", "explanation"}
    assert unseen(metadata["answer"].text) == []
    assert unseen(json.dumps(metadata["explanation"].data, ensure_ascii=False)) == []
    assert [line for message in logged for line in message.split("\n") if unseen(line)] == []


@tries("orchestration/explain/page.py:_finding: HTML", "orchestration/explain/page.py:render_page: HTML")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_page_of_an_explanation_shows_texts(text: str) -> None:
    """No tag and no attribute comes from a key, a value or the text of a record."""
    page, plain = (
        render_page(
            Explanation(each, [each, None], 1, True, each, (Finding(each, {}, (Finding(each),)),), (each,))
        )
        for each in (text, "n")
    )

    assert unseen(page) == []
    tag = re.compile(r"<[^>]*>")
    assert tag.findall(page) == tag.findall(plain)


@tries("expectations/suites.py:_text: RenderedStringTemplateContent")
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_page_of_data_docs_shows_texts(text: str) -> None:
    """Great Expectations escapes HTML in what its own pages show; what is left to us is what cannot be seen."""
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.render.view import DefaultJinjaPageView

    from lakejoin.expectations.suites import RuleHolds

    meta = {"rule": "r", "statement": "s", "sql": "SELECT 1"}
    result = ExpectationValidationResult(
        success=False,
        expectation_config=ExpectationConfiguration(type="rule_holds", kwargs={}, meta=meta),
        result={"observed_value": 1, "details": {"unexpected_rows": [text]}},
    )
    blocks = RuleHolds._diagnostic_unexpected_table_renderer(result=result)
    assert blocks is not None
    template = blocks[0].table[0][0].string_template  # type: ignore[union-attr]

    shown = DefaultJinjaPageView().render_string_template(template)

    assert unseen(shown) == []
    assert "<script" not in shown
    assert "<img" not in shown
    assert "$row" not in shown or "$row" in text
    cell = re.search(r"<code[^>]*>(.*)</code>", shown, re.DOTALL)
    assert cell is not None
    assert len(text) > LONG or len(html.unescape(cell[1])) >= len(text.strip())


def _overview(text: str) -> Overview:
    expected = Expected(text, text, text, text, holds=False)
    return Overview(text, [Standing(text, 3, text, [Read(1, 4, 1)])], [expected])


def _result(row: str, error: str | None = None) -> RuleResult:
    return RuleResult("left_row_exists", "A statement.", False, 1, () if error else (row,), error)


def _outside_code(markdown: str) -> str:
    """What of a line of Markdown stands before its one code span, which runs to its end."""
    before, fence, rest = re.split("(`+)", markdown, maxsplit=1)
    assert rest.endswith(fence)
    assert fence not in re.findall("`+", rest[: -len(fence)])
    return before
