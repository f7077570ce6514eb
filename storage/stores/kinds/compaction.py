"""Compacts a store: drops rows that were superseded, deleted or have expired, and writes the others in order.

The row with the newest time stays even if it is a delete: what a store has observed never goes back.
"""

from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.storage.stores.kinds.base import bound_of
from lakejoin.storage.stores.scan.reader import Reader
from lakejoin.storage.stores.write.layout import DELETED, OBSERVED, PLACE, PUT, Layout
from lakejoin.storage.stores.write.puts import Writer
from lakejoin.transforms.model.event_time import instant
from lakejoin.transforms.model.schemas import named

ROWS_PER_FILE = 500_000
_NEXT, _LAST = "_lj_next", "_lj_last"


def compact(reader: Reader, layout: Layout, writer: Writer) -> None:
    """Rewrite the table of a store in its order, in one commit; a put at the same time is kept."""
    last = writer.last_put  # before the rows are looked at: there may be later ones then
    newest = reader.tables[0].greatest((OBSERVED,)) if layout.times else None
    keep = partial(_kept, layout=layout, bound=bound_of(reader, layout.retention), newest=newest)
    writer.compact(keep, last, max(1, -(-reader.estimate() // ROWS_PER_FILE)))


def _kept(rows: DataFrame, *, layout: Layout, bound: datetime | None, newest: int | None) -> DataFrame:
    if layout.kind == "key-value":
        return _latest(rows, layout).where(~named(DELETED))
    is_newest = named(OBSERVED) == F.lit(newest)
    if layout.kind == "versioned":
        return _unexpired_versions(_latest(rows, layout), layout, bound, is_newest)
    settled = rows if layout.duplicates else _latest(rows, layout)
    alive = ~named(DELETED)
    if bound is not None:
        alive = alive & (named(layout.times[0]) > instant(bound))
    return settled.where(alive | is_newest)


def _latest(rows: DataFrame, layout: Layout) -> DataFrame:
    """The last row at each place."""
    place = [*layout.key, *layout.times]
    rest = [named(name) for name in rows.columns if name not in place]
    last = F.max_by(F.struct(*rest), F.struct(named(PUT), named(PLACE))).alias(_LAST)
    found = rows.groupBy(*map(named, place)).agg(last)
    return found.select(*[named(n) if n in place else F.col(_LAST)[n].alias(n) for n in rows.columns])


def _unexpired_versions(
    versions: DataFrame, layout: Layout, bound: datetime | None, is_newest: Column
) -> DataFrame:
    """Versions that did not end before a bound; the latest of a key never expires unless it is a delete."""
    if bound is None:
        return versions
    start = named(layout.times[0])
    of_key = Window.partitionBy(*map(named, layout.key)).orderBy(start)
    ended = named(_NEXT) < instant(bound)
    forgotten = named(_NEXT).isNull() & named(DELETED) & (start < instant(bound))
    numbered = versions.withColumn(_NEXT, F.lead(start).over(of_key))
    return numbered.where(~F.coalesce(ended, F.lit(False)) & ~forgotten | is_newest).drop(_NEXT)
