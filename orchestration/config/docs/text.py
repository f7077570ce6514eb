"""Holds the words of `docs/configuration.md` around the tables that `reference` makes from the model."""

from string import Template

EXAMPLE = """\
name: flights
lake: ./lake
tables:
  flights:
    source:
      format: debezium
      path: data/flights/{date}.jsonl.gz
    columns:
      flight_id: bigint
      tailnum: string
      fare_total: decimal(12,2)
      sched_dep: timestamp
      event_time: timestamp
    key: [flight_id]
    sequence: [lsn]
    event_time: event_time
  planes:
    source: {format: debezium, path: "data/planes/{date}.jsonl.gz", settle: 30 seconds}
    columns: {tailnum: string, model: string, event_time: timestamp}
    key: [tailnum]
    sequence: [lsn]
    event_time: event_time
    tombstone_retention: 90 days
  weather:
    source: {format: debezium, path: "data/weather/{date}.jsonl.gz"}
    columns: {station: string, temp: double, event_time: timestamp}
    key: [station]
    sequence: [lsn]
    event_time: event_time
    versioned: {history_retention: 10 days}
streams:
  departures:
    source: {format: debezium, path: "data/flights/{date}.jsonl.gz"}
    columns: {flight_id: bigint, origin: string, sched_dep: timestamp, status: string}
    key: [flight_id]
    sequence: [lsn]
    event_time: sched_dep
    where: "status = 'departed'"
joins:
  flights_with_planes:
    left: flights
    right: planes
    foreign_key: [tailnum]
    how: left
    prefix: plane_
  departures_with_weather:
    stream: departures
    table: weather
    foreign_key: [origin]
    how: left
    grace: 2 hours
  flights_with_sister_planes:
    left: flights_with_planes
    right: planes
    foreign_key: ["upper(trim(plane_tailnum))"]
    how: inner
    prefix: sister_
"""

MISTAKES = """\
name: flights
lake: ./lake
tables:
  planes:
    source: {format: debezium, path: data/planes.jsonl}
    colums: {tailnum: string}
    key: tailnum
joins:
  pairs: {left: planes, right: plane, foreign_key: [tailnum], how: outer}
"""

PAGE = Template("""\
<!-- Made by `python -m lakejoin.orchestration.config.docs.reference`; change the model, not this page. -->

# The configuration file

One YAML file declares one pipeline: the tables of change data and the streams it reads, and the joins
it keeps up to date. `lakejoin validate lakejoin.yaml` reads it as every other command does, and reports all
mistakes at once.

```yaml
$example```

Editors that know JSON Schema complete and check the file as you type, with this as its first line
(the schema lies in the package `orchestration`; `lakejoin init` writes the line with the path that it has there):

```yaml
# yaml-language-server: $$schema=orchestration/lakejoin.schema.json
```

## The pipeline

$pipeline

### spark

$spark

Settings of Spark SQL (`spark.sql.…`) are of three kinds. Those by which rows are read, joined and
written faster or slower are yours: memory, partitions, broadcasts, adaptive execution, compression.
Those that decide what a value is are fixed: time zone, ANSI mode, case, decimals, dates, literals,
variables. All others that could change a value, such as `spark.sql.legacy.…`, stay as Spark has
them. A setting that is not of the first kind is refused when the file is read: remove it. A
`spark-defaults.conf` or a session that runs already changes none of them either.

### maintenance

$maintenance

### expect

$expect

Nothing is stopped by a figure that is not as expected. `lakejoin check` prints it and ends with exit code 1, `lakejoin
status` prints it, `lakejoin metrics` has it as `lakejoin_expectation_met`, and the first page of Data Docs lists it.
In Dagster it is a check that warns: `records_accepted` and `lag` of the table, `dangling` of the join. While
`NAME_published` is on, a lag that begins or ends is told within half a minute, though nothing runs.

#### verified

$verified

In Dagster each result that DuckDB can compute has the check `verified`; the job `NAME_check` looks at all rows.
`lakejoin verify` does the same without Dagster: [what it can compute](verify.md#what-is-not-verified).

## A table

$table

Of a row that does not meet `where` nothing but its key and time stays, as of a deleted one: an older record of it may
still come. A batch counts such records as `filtered`. One for which the condition cannot be computed is quarantined. A
record that leaves out values its row has is asked by these; where the row is not there, they are unknown, and the
record is quarantined if the condition does not leave it out anyway.

### expect, of a table or stream

$expect_of_input

### versioned

$versioned

A record with the time of a version it meets takes its place, by sequence and position; an older one
rewrites history and is out of order for foreign-key joins, which always go by the newest version.

### column

A column is its type, as in `price: double`, or a mapping: `price: {type: double, as: precise, from: PRICE}`.

$column

### source

$source

Input that can be read in two ways is refused before a batch is planned for it, with what was found and what to
declare: numbers in quotes that are base64 as well, binary that is hexadecimal as well, whole numbers that are no
times of our days by their unit, updates that lack a column, a column in other capitals, events of two tables, a
sequence that orders no commits, reads of a snapshot that nothing orders. `as` and `from` of a column, `tables`,
`absent`, `snapshots` and `trust_sequence` say what is meant. They may change at any time, and count for what is read
from then on.

### op

Flat rows are what is left when nothing but the row and some columns about it are sent. `op: dms` is short for `op:
{preset: dms}`; `op: {column: type, upsert: [insert, update], delete: [delete]}` says it for others. A value that is not
listed is quarantined as `unknown_op`.

$op

| preset | of | says what happened |
|---|---|---|
| [`debezium-unwrapped`](tools/debezium-unwrapped.md) | rows of `ExtractNewRecordState` | `__op`; `__deleted` |
| [`dms`](tools/dms.md) | AWS DMS | `Op`; rows of a full load have none |
| [`maxwell`](tools/maxwell.md) | Maxwell: the row in `data`, former values in `old` | `type` |
| [`canal`](tools/canal.md) | Canal, TiCDC: rows in the list `data`, former values in `old` | `type` |
| [`goldengate`](tools/goldengate.md) | Oracle GoldenGate: the row in `after` and `before` | `op_type` |
| [`airbyte`](tools/airbyte.md) | Airbyte's columns of change data capture | `_ab_cdc_deleted_at` |
| [`fivetran`](tools/fivetran.md) | Fivetran | `_fivetran_deleted` |
| [`datastream`](tools/datastream.md) | Google Datastream: the row in `payload` | `source_metadata.change_type` |

The page of a preset has a file that is complete. With `dms` a table needs a `sequence`.

Where a preset says that a member holds the row, columns are looked for there, and `from: $$.xid` takes one of the
record itself. In `jsonl`, `from` is a path: `from: customer.id` is `id` within `customer`, and backquotes keep a dot.

### security

$security

Topics as a source, with a file that is complete: [Kafka](kafka.md).

### csv

$csv

### limits

$limits

What a line breaks is told by `lakejoin show FILE quarantine`. Limits may change at any time.

What a Delta table as a source means for order, batches and age: [Delta tables as sources](delta-sources.md).

## A stream

$stream

A record with key and sequence of an earlier one is a duplicate; without a declared sequence there are
none. An earlier one is looked for from the batch's oldest event time on: a record that is delivered
again has the time it had. Deletes are ignored.

## A join of tables

$join

A join may be the left side of another, never a right side, and joins may not make a cycle. A table
may be both sides of a join, and take part in several. The joined table has the columns of the left
side, then those of the right side with the prefix, or what `select` says; if a name would stand there
twice, the file is refused. What sits on a join finds the columns of the first join's result.

The key of the joined table is that of the left side; with `result_key: combined` the right key stands
before it, under its prefixed names ([decision 10](decisions/0010-highwater-marks-and-combined-keys.md)).

### select and where

```yaml
joins:
  orders_with_customers:
    left: orders
    right: customers
    foreign_key: [customer_id]
    how: left
    prefix: customer_
    select:
      - "* except (note, customer_email)"
      - order: order_id
      - net: cast(amount / (1 + customer_tax) as decimal(12,2))
    where: amount > 0 and customer_country <> 'XX'
```

An entry of `select` is a column, `"*"`, `"* except (a, b)"`, or names of columns with what each is: a column, or an SQL
expression. Both read the left columns and the right ones with the prefix, whatever else is selected; a left row without
a match has nulls for the right ones. The columns of the key must be there, under any name. Where the type of an
expression does not follow from its parts by simple rules, `cast` says it. Expressions are those that a foreign key may
have.

What a join neither selects nor needs is not copied into its result, and a change of it is none for the join
([decision 29](decisions/0029-what-a-join-reads-of-a-row.md)). An expression over one side that fails puts its
record into quarantine. One over both sides is null for that pair of rows, or the condition is not met; the batch
counts it as `uncomputed`. A `select` or `where` that changes is computed anew: `lakejoin run FILE --rebuild JOIN`.
Until that is done readers have the former result.

## A star

A join with `rights` in place of `right` joins one left side with several tables:

```yaml
joins:
  orders_in_full:
    left: orders
    rights:
      customer: {table: customers, foreign_key: [customer_id], how: left}
      product: {table: products, foreign_key: [product_id], how: inner}
      gift: {table: products, foreign_key: [gift_id], how: left}
    select: ["* except (customer_email)", {total: pieces * product_price}]
```

$star

### A right side

$right_side

The result is that of a chain of joins, one for each right side, with one table in the place of theirs; its key is that
of the left side ([decision 30](decisions/0030-a-star-is-emitted-once.md)). Every right side has its logs, in
`joins/NAME/SIDE`. `select` and `where` read all rows. A join may sit on a star, and a star on a join.

## A join of a stream with a table

$stream_join

Every record gives at most one row, which is never changed again. `{stream, table}` in place of
`{left, right}` or `{left, rights}` tells the kinds of joins apart.

## Groups

Groups keep one row for each value that some columns of a table, of a join or of other groups have:

```yaml
groups:
  customers_by_country:
    of: orders_in_full
    by: [customer_country, {month: "trunc(ordered_at, 'month')"}]
    select:
      orders: count(*)
      revenue: sum(total)
      last_order: max(ordered_at)
      biggest: first(order_id, order by total desc)
      items: "collect(struct(order_id, total), order by ordered_at)"
    having: orders >= 10
```

$group

Where all aggregates are counts, sums of whole numbers or decimals (of up to 28 digits), and averages of whole numbers,
and there is no `having`, a batch adjusts the groups by the rows that changed. Else it computes the groups anew that it
touches, from all their rows ([decision 31](decisions/0031-a-row-subscribes-to-its-group.md)). The result is that of
SQL's GROUP BY, in the table `joins/NAME/joined`; a group without rows goes. Rows with a null in what they share are a
group, as in SQL. A join may have groups as its left side, and as a right one, found by what their rows share.

| aggregate | what it is |
|---|---|
| `count(*)`, `count(x)`, `count(distinct x)` | how many rows, values that are not null, different values |
| `sum(x)`, `avg(x)` | of numbers, with the types of Spark's own: whole numbers add up to `bigint` |
| `min(x)`, `max(x)` | the least and the greatest |
| `any(x)` | the value of the row with the least key |
| `first(x, order by y, z)`, `last(…)` | the value of the first or last row in an order, or with `desc` in its reverse |
| `collect(x, order by y)` | the values as an array, without nulls |
| `map(k, x, order by y)` | a map of the values by `k`: of several rows with the same `k` the last |

`x`, `y` and `k` are columns or SQL expressions over a row; `struct(a, b)` makes one value of several. In an order nulls
come first; among equals, and without `order by`, the key of the rows decides. Floating-point numbers are added in the
order of their size, so that their sum is always the same. A sum that is too great for its type is null, and counted as
`uncomputed`. An expression that fails for a record puts it into quarantine; for the row of a join it is null, and
counted likewise.

## The history of a result

With `history: true`, joins of tables and groups also keep every row that they ever had, in `joins/NAME/history`:

$history

A row has the columns of the result, `valid_from` (inclusive) and `valid_to` (exclusive; null while the result has the
row), by the batches' clock. A row that a batch leaves as it was goes on. `_lj_batch` and `_lj_until` are the batches
that made and ended it; `_lj_left_sequence` and `_lj_right_sequence` order the changes of the rows that it was made of,
null where a side is a join. `lakejoin show` reads it: `NAME.history`, `NAME --as-of 2024-01-02T12:00:00Z`, and `NAME
--as-of-batch B` however long ago. A history begins with the rows that the result has then. It may be declared, and left
out again, at any time; of what was while it was left out `show` says that it is not known. What `--rebuild` finds
otherwise than it was is a new version; a result with other columns begins a new history ([decision
32](decisions/0032-a-history-is-one-table.md)).

With `as_of: event_time`, on a join of which all sides are `versioned` tables, a row says what was true when: from
`valid_from` on until `valid_to`, by the event times of both sides. There is no row for a time at which the join had
none. Where a row goes on as it was, it is one row, however many records said so. A record that comes late revises what
the history says of its time: `_lj_batch` is the batch that wrote the row, and there is no `_lj_until`. Nothing can
change any more before `settled_until`, which `lakejoin status` shows, and Dagster as metadata of the history. `show
NAME --as-of TIME` has the rows that were true at that time. Such a history is made of what the histories of the sides
still hold, and so also reaches back to before it was declared; left out for a while, it begins anew
([time](time.md#histories-of-joins), [decision 33](decisions/0033-a-history-by-event-time.md)).

## How the table of a result is kept

`materialized` of a join, of groups, or of a history says how its table is kept, beside its rows:

$materialized

```yaml
joins:
  orders_with_customers:
    …
    materialized:
      table: sales.orders_with_customers
      cluster_by: [order_day]
      comment: Every order with its customer, as of the last batch.
      comments: {order_day: in the time zone of the shop}
      properties: {owner.team: sales}
```

All of it may change at any time and takes effect with the next batch, but for `partition_by`. What is not declared any
more stays as it is. `properties`: any names but `delta.…`, `parquet.…`, `spark.…` and `option.…`; of Delta's own
`delta.checkpointInterval`. [Consuming](consuming.md#in-a-catalog) tells how to reach a catalog, and what each choice
costs; [decision 34](decisions/0034-tables-of-results-as-declared.md) why.

## Names

Pipelines, tables, streams, joins and groups: a letter a to z, then at most 62 of a to z, 0 to 9 and `_`. Tables,
streams, joins and groups share one set of names; `quarantine` is taken. Columns: any text without spaces, tabs, line
breaks and ` , ; { } ( ) = `, which Delta Lake does not store in names; not what begins with `_lj_`,
nor Delta Lake's `_change_type`, `_commit_version`, `_commit_timestamp`. Two columns may not differ in
capitals only.

## Values

- **Types of columns** are Spark's: $types. A key, and so a foreign key, is never float, double,
  array, map or struct. Decimals are never rounded: one with more digits than its type is quarantined. The values in
  an array, map or struct of JSON or CSV are read as a column of their type is, by `time` and `timezone`; one that
  does not fit makes the whole bad. The keys of a map are text, but for Parquet, ORC and Delta tables.
- **Durations** are a number and a unit (milliseconds, seconds, minutes, hours, days): `30 days`,
  `1.5 hours`.
- **Sizes** are a number and a unit (bytes, kB, MB, GB, TB, each a thousand of the one before): `100 MB`.
- **Paths** that are relative start from the directory of the file. Environment variables are not
  filled in. The absolute path of a lake holds none of `[ ] ^ | \\`, nor `%` before two hexadecimal digits.
- **YAML**: scalars are read by the rules of YAML 1.2, so `on` and `no` are text. Duplicate keys,
  tags and merge keys (`<<`) are refused; aliases are fine. In `{…}` put text that holds a comma or
  a brace in quotes: `{fare: "decimal(12,2)"}`. A file has at most 1 MiB.

## Foreign keys

Each entry is a column of the left row or an SQL expression over it, of exactly the type of the
right key's column; there are as many as the right key has columns. Expressions are checked without
Spark, and by Spark when a run starts, before it plans anything. An expression must give
the same value for the same row at any time: no subqueries, aggregates, window functions, no clock,
chance or session. A record for which an expression fails is quarantined; `try_cast` in place of `cast`, and
`try_element_at` in place of `[…]`, give null instead. These functions may be called, in `select` and `where`, too:

$functions.

The other functions of Spark are refused, with the reason. A text in an expression is what it is:
`'$${env:HOME}'` is not replaced. Comments and hints are refused. Beside a date or a time a text may
not be computed of constants, as in `cast(concat('to', 'day') as date)`: Spark would read the clock.

## Mistakes

This file

```yaml
$mistakes```

is refused with

```text
$messages
```
""")
