"""What the page on performance shows of results: the table of targets, the profile and the plots."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.targets.plots import draw
from bench.targets.profile import profile
from bench.targets.results import Result, read_results
from bench.targets.table import HEADER, markdown, marks, put_into, rows
from kept_results import MEBIBYTE, race


def test_table_says_who_else_was_at_work_and_which_first_load_was_used() -> None:
    """A busy machine, a lake of another commit and a row without a measurement are told."""
    walls = {"ours": [2.0], "spark": [2.0]}
    busy = race(5, walls, lake={"commit": "older"})
    busy.found["batches"]["ours"][0]["others_cpu_seconds"] = 2

    lines = [dict(zip(HEADER, cells, strict=True)) for cells in rows([busy], numbers=[1, 9])]

    assert [line["row"] for line in lines] == ["1", "1", "1", "9"]
    assert lines[1]["others' CPU"] == "25%, busy"
    assert lines[1]["measured"].endswith("its first load is of older)")
    assert (lines[1]["reached"], lines[3]["measured"]) == ("no", "not measured")


def test_table_is_put_between_the_marks_of_a_page(tmp_path: Path) -> None:
    """What stands around it stays; a second time gives the same page; a page without marks is refused."""
    page = tmp_path / "page.md"
    begin, end = marks("targets")
    page.write_text(f"before\n{begin}\nold\n{end}\nbehind\n")
    table = markdown([tuple("123456789")])

    put_into(page, table)
    once = page.read_text()
    put_into(page, table)

    assert page.read_text() == once == f"before\n{begin}\n\n{table}\n{end}\nbehind\n"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="expected lines"):
        put_into(page, table)


def test_profile_shows_the_first_measurement_beside_the_newest() -> None:
    """Of the smallest tables, a batch and a first load; a stage that only one of them has stays empty in the other."""

    def measured_with(stages: Mapping[str, float], *, day: int, scale: float = 1) -> Result:
        work = {
            "cpu_seconds": 2,
            "read_bytes": MEBIBYTE,
            "written_bytes": 0,
            "files_written": 3,
            "spark_jobs": 4,
        }
        found = race(scale, {"ours": [1.0]}, loads={"ours": 9.0}, day=day)
        found.found["medians"] = {"ours": {"wall_seconds": day, **work}}
        found.found["median_stage_seconds"] = {"ours": stages}
        found.found["first_load"]["ours"] |= {**work, "stage_seconds": stages}
        return found

    results = [
        measured_with({"joined/j": 0.5}, day=4),
        measured_with({"joined/j": 0.1}, day=3, scale=5),
        measured_with({"joined/j": 1}, day=2),
        measured_with({"joined/j": 4, "lookup/j": 2}, day=1),
    ]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in profile(results).splitlines()]
    assert lines[0][1:3] == ["batch, 2026-01-01, commit1", "batch, 2026-01-04, commit4"]
    assert lines[2] == ["seconds, all in all", "1.0", "4.0", "9.0", "9.0"]
    assert lines[-2:] == [["`joined/j`", "4.0", "0.5", "4.0", "0.5"], ["`lookup/j`", "2.0", "", "2.0", ""]]
    assert profile([]) == ""


def test_plots_show_races_by_table_size_batch_size_and_stage(tmp_path: Path) -> None:
    """Three files, and the same results make the same files."""
    results = [
        race(5, {"ours": [2.0], "spark": [9.0]}),
        race(1, {"ours": [1.0], "spark": [2.0], "duckdb": [1.0]}),
        race(1, {"ours": [1.0], "spark": [2.0]}, changes=(100, 1)),
    ]

    drawn = draw(results, tmp_path)
    first = [file.read_bytes() for file in drawn]

    assert [file.name for file in drawn] == [
        *("batch-cost-by-table-size.svg", "batch-cost-by-batch-size.svg", "batch-cost-by-stage.svg")
    ]
    assert [file.read_bytes() for file in draw(results, tmp_path)] == first
    assert draw([], tmp_path) == []


def test_results_are_read_newest_first_and_plans_beside_them_passed_over(tmp_path: Path) -> None:
    """A folder of results holds text, too."""
    for day in (1, 3, 2):
        result = race(1, {"ours": [1.0]}, day=day)
        (tmp_path / result.file).write_text(json.dumps(result.found))
    (tmp_path / "1-plan.txt").write_text("a plan")

    assert [result.file for result in read_results(tmp_path)] == ["3.json", "2.json", "1.json"]
