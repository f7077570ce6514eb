"""What a plan is made of when the clock or the code is not what it was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_shop, run
from lakejoin.orchestration.planning import plan_builder
from lakejoin.orchestration.planning.pending_input import Group
from lakejoin.orchestration.planning.plan_builder import PlanBuilder
from lakejoin.orchestration.runs import run as runs
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Published


@pytest.mark.bad_input(48)
def test_clock_of_the_plans_never_goes_back(tmp_path: Path) -> None:
    """A machine whose clock was set back plans its batches at the time of the last one."""
    shop = make_shop(tmp_path)
    lake = Lake(shop.lake)
    first = PlanBuilder(shop, lake, Journal(lake)).batch(Group((), ()))
    ahead = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)

    journal = Journal(lake)
    journal.write_plan(replace(first, planned_at=ahead))
    journal.write_published(Published(1, "batch", ahead, (), {}, {}, {}, {}, {}, {}))

    assert first.planned_at < ahead
    assert PlanBuilder(shop, lake, Journal(lake)).batch(Group((), ())).planned_at == ahead


@pytest.mark.bad_input(49)
@pytest.mark.bad_input(40)
@pytest.mark.spark
def test_batch_that_other_code_planned_is_finished_and_says_so(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage is a function of the plan, so newer code goes on where older code stopped; the plan names who began."""
    shop = make_shop(tmp_path, ["2024-01-01"])
    with monkeypatch.context() as before:
        before.setattr(plan_builder, "code_version", lambda: "0.0.1")
        before.setattr(runs, "run_batch", _killed)
        with pytest.raises(KeyboardInterrupt):
            run(shop, spark)

    assert run(shop, spark) == 1

    journal = Journal(Lake(shop.lake))
    assert [plan.code for plan in journal.plans] == ["0.0.1"]
    assert journal.published[0].tables["orders"]["applied"] == 5


def _killed(*arguments: object, **options: object) -> None:
    raise KeyboardInterrupt
