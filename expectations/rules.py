"""Defines the rules of a joined table and its state, each once, as SQL that selects the offending keys.

The gate before a commit and the Great Expectations suites run the same texts, through `expectations.gate`. They read
the view of `expectations.keys`: one row for each primary key. The frames behind it hold all rows, or only those of the
keys that a batch touched. Restricted frames must be closed; otherwise a row that was left out would look missing:

- `left_rows` holds the row of every primary key in `joined`, `subscriptions` and `answers`;
- `right_rows` holds the row of every foreign key in `left_rows` and of every right key in `joined`;
- `subscriptions` holds all live ones of every primary key in `left_rows`, `joined` its rows after the
  batch. In a batch the emissions are enough: a touched left row without one has no right row and nothing to
  show.

A row that is missing from closed frames was purged, or never came: it counts as deleted. Hashes and foreign keys may be
null, so they are compared with `IS [NOT] DISTINCT FROM`. The join and its subscriptions are those of KIP-213.
"""

from dataclasses import dataclass

from lakejoin.expectations.keys import Kind, keys_sql

_JOINS: tuple[Kind, ...] = ("inner", "left")
_ROWS: tuple[Kind, ...] = (*_JOINS, "members")
_STREAMS: tuple[Kind, ...] = ("stream", "stream_left")


@dataclass(frozen=True)
class Rule:
    """An invariant."""

    name: str
    """Says what holds; unique among the rules of a kind. `--accept` takes it."""
    statement: str
    """The same in one sentence for people."""
    where: str
    """SQL condition of an offending key over the columns of the view."""
    shows: str
    """Columns of the view that a sample shows of it, beside the key."""
    kinds: tuple[Kind, ...] = _JOINS
    """What it applies to."""

    @property
    def sql(self) -> str:
        """The query of the offending keys, over the view as `keys`."""
        return f"SELECT primary_key, {self.shows}\nFROM keys\nWHERE {self.where}"

    def query(self, kind: Kind) -> str:
        """The whole query; it reads frames as `{name}`."""
        return f"WITH keys AS (\n{keys_sql(kind)}\n)\n{self.sql}"


RULES: tuple[Rule, ...] = (
    Rule(
        name="one_row_per_key",
        statement="The joined table has one row for each key.",
        where="joined > 1",
        shows="joined AS copies",
    ),
    Rule(
        name="left_row_exists",
        statement="No joined row outlives its left row.",
        where="joined > 0 AND NOT lives",
        shows="batch",
    ),
    Rule(
        name="left_row_current",
        statement="A joined row is made of the current left row, not of an older one.",
        where="joined > 0 AND lives AND joined_left_hash IS DISTINCT FROM left_hash",
        shows="joined_left_hash AS found, left_hash AS expected, batch",
    ),
    Rule(
        name="right_row_exists",
        statement="No row of an inner join outlives its right row.",
        where="joined > 0 AND (right_key IS NULL OR NOT right_lives)",
        shows="right_key, batch",
        kinds=("inner",),
    ),
    Rule(
        name="right_columns_null",
        statement="A row of a left join has no right columns once its right row is gone.",
        where="joined > 0 AND CASE WHEN right_key IS NULL THEN joined_right_hash IS NOT NULL ELSE NOT right_lives END",
        shows="right_key, joined_right_hash, batch",
        kinds=("left",),
    ),
    Rule(
        name="right_row_current",
        statement="A joined row is made of the current right row, not of an older one.",
        # Looks at the right row it was joined with; whether that is the right one, `right_row_matches` says.
        where="right_key IS NOT NULL AND right_lives AND joined_right_hash IS DISTINCT FROM right_hash",
        shows="right_key, joined_right_hash AS found, right_hash AS expected, batch",
    ),
    Rule(
        name="right_row_matches",
        statement="A joined row's right row is the one that the foreign key of its left row names.",
        # An older left row may have named another right row: that is for `left_row_current` to say.
        where="lives AND joined_left_hash IS NOT DISTINCT FROM left_hash\n"
        "  AND right_key IS NOT NULL AND right_key IS DISTINCT FROM foreign_key",
        shows="right_key AS found, foreign_key AS expected, batch",
    ),
    Rule(
        name="condition_met",
        statement="A joined row meets the condition of its join.",
        where="joined > 0 AND unmet > 0",
        shows="batch",
    ),
    Rule(
        name="one_subscription",
        statement="Each left row with a foreign key has exactly one live subscription.",
        where="lives AND foreign_key IS NOT NULL AND subscriptions <> 1",
        shows="foreign_key, subscriptions",
        kinds=_ROWS,
    ),
    Rule(
        name="no_other_subscription",
        statement="A left row that is gone or has no foreign key has no live subscription.",
        # On restricted frames this holds also for subscriptions that were looked up by a changed right key:
        # each was answered, so the left row that it names is at hand.
        where="subscriptions > 0 AND NOT (lives AND foreign_key IS NOT NULL)",
        shows="subscribed_key, subscribed_hash",
        kinds=_ROWS,
    ),
    Rule(
        name="subscription_agrees",
        statement="A live subscription has the foreign key and the hash of its current left row.",
        where="subscriptions > 0 AND lives AND foreign_key IS NOT NULL\n"
        "  AND (subscribed_key IS DISTINCT FROM foreign_key OR subscribed_hash IS DISTINCT FROM left_hash)",
        shows="subscribed_key AS found_key, foreign_key AS expected_key,\n"
        "  subscribed_hash AS found_hash, left_hash AS expected_hash",
        kinds=_ROWS,
    ),
    Rule(
        name="answer_subscribed",
        statement="The last answer that was applied to the current left row came from its subscription.",
        # An answer to a value that the row no longer has proves nothing; its subscription is rightly gone. An
        # inner join retracts by an answer to the deleted subscription of a row that now has no foreign key: the
        # one answer that leaves no subscription behind.
        where="lives AND answer_key IS NOT NULL AND answer_hash IS NOT DISTINCT FROM left_hash\n"
        "  AND (foreign_key IS NOT NULL OR told)\n"
        "  AND (subscriptions = 0 OR subscribed_key IS DISTINCT FROM answer_key\n"
        "    OR subscribed_hash IS DISTINCT FROM answer_hash)",
        shows="answer_key, answer_hash, told AS right_change",
    ),
    Rule(
        name="nothing_pending",
        statement="Every left row whose right row lives is in the joined table.",
        where="lives AND right_lives AND joined + unmet = 0",
        shows="foreign_key",
        kinds=("inner",),
    ),
    Rule(
        name="nothing_pending",
        statement="Every left row is in the joined table, with its right row if that lives.",
        where="lives AND unmet = 0 AND (joined = 0 OR (right_key IS NULL AND right_lives))",
        shows="foreign_key, batch",
        kinds=("left",),
    ),
    Rule(
        name="one_row_per_key",
        statement="There is one row for each group.",
        where="found > 1",
        shows="found AS copies",
        kinds=("groups",),
    ),
    Rule(
        name="totals_agree",
        statement="No more rows leave a group than came, and the last one leaves nothing behind.",
        where="rows < 0 OR (rows = 0 AND rest)",
        shows="rows",
        kinds=("totals",),
    ),
    Rule(
        name="group_exists",
        statement="No group outlives its rows, or is shown that does not meet the condition.",
        where="found > 0 AND expected = 0",
        shows="batch",
        kinds=("groups",),
    ),
    Rule(
        name="group_current",
        statement="A group is made of its current rows.",
        where="found > 0 AND expected > 0 AND found_hash IS DISTINCT FROM expected_hash",
        shows="found_hash AS found, expected_hash AS expected, batch",
        kinds=("groups",),
    ),
    Rule(
        name="nothing_pending",
        statement="Every group that has rows and meets the condition is there.",
        where="expected > 0 AND found = 0",
        shows="expected_hash AS expected",
        kinds=("groups",),
    ),
    Rule(
        name="versions_disjoint",
        statement="No two versions of a row are there after the same batch, and none after no batch.",
        where="doubled > 0 OR instants > 0",
        shows="doubled, instants",
        kinds=("versions",),
    ),
    Rule(
        name="current_version_shown",
        statement="The version that no batch has ended is the row that the result has.",
        where="current_hash IS DISTINCT FROM row_hash",
        shows="current_hash AS found, row_hash AS expected",
        kinds=("versions",),
    ),
    Rule(
        name="versions_disjoint",
        statement="No two rows of a key were true at the same time, and none at no time.",
        where="doubled > 0 OR instants > 0",
        shows="doubled, instants",
        kinds=("event_versions",),
    ),
    Rule(
        name="versions_differ",
        statement="A row that goes on as it was is one row.",
        where="cut > 0",
        shows="cut",
        kinds=("event_versions",),
    ),
    Rule(
        name="true_at_each_moment",
        statement="The history has at each moment what the versions of both sides make then.",
        where="wrong > 0",
        shows="wrong, first_wrong",
        kinds=("event_versions",),
    ),
    Rule(
        name="one_row_per_key",
        statement="The table has one row for each key, tombstones included.",
        where="copies > 1",
        shows="copies",
        kinds=("table",),
    ),
    Rule(
        name="hash_of_live_row",
        statement="A row has a hash exactly while it lives.",
        # Every rule above compares hashes; a null one would pass for a deleted row.
        where="contradictions > 0",
        shows="hash, deleted",
        kinds=("table",),
    ),
    Rule(
        name="intervals_disjoint",
        statement="No two versions of a key are valid at the same time, and none at no time.",
        where="doubled > 0 OR instants > 0",
        shows="doubled, instants",
        kinds=("history",),
    ),
    Rule(
        name="intervals_adjoin",
        statement="A version ends when the next one of its key begins.",
        where="gaps > 0",
        shows="gaps",
        kinds=("history",),
    ),
    Rule(
        name="last_version_current",
        statement="The last version of a key is its current row.",
        where="latest_hash IS DISTINCT FROM row_hash",
        shows="latest_hash AS found, row_hash AS expected",
        kinds=("history",),
    ),
    Rule(
        name="joined_once",
        statement="No record of the stream is joined twice.",
        where="joined > 1",
        shows="joined AS copies, batch",
        kinds=_STREAMS,
    ),
    Rule(
        name="joined_or_waiting",
        statement="A record that waits, or was dropped as late, is not joined.",
        where="joined > 0 AND (waiting > 0 OR late > 0)",
        shows="waiting, late, batch",
        kinds=_STREAMS,
    ),
    Rule(
        name="record_exists",
        statement="A joined row is made of an accepted record of the stream.",
        where="joined > 0 AND (records <> 1 OR joined_hash IS DISTINCT FROM hash)",
        shows="records, joined_hash AS found, hash AS expected, batch",
        kinds=_STREAMS,
    ),
    Rule(
        name="nothing_lost",
        statement="Every accepted record is joined, waits, or was dropped as late.",
        where="records > 0 AND joined + waiting + late = 0",
        shows="hash",
        kinds=("stream_left",),
    ),
    Rule(
        name="stream_time_monotone",
        statement="Stream time never goes back.",
        where="clock < clock_before OR (clock IS NULL AND clock_before IS NOT NULL)",
        shows="clock AS found, clock_before AS before",
        kinds=("batches",),
    ),
    Rule(
        name="counts_add_up",
        statement="Every record that came went somewhere, and every record that waited left or waits still.",
        # what is in the buffer is counted here alone, and only after the last batch
        where="received <> sorted OR waited <> left_waiting OR waiting <> in_buffer",
        shows="received, sorted, waited, left_waiting, waiting, in_buffer",
        kinds=("batches",),
    ),
    Rule(
        name="emissions_kept",
        statement="The joined table has as many rows of a batch as the batch emitted.",
        # Of an inner join it is the one rule that sees a loss: whether a record met a row, nothing else remembers.
        where="kept <> emitted",
        shows="kept, emitted",
        kinds=("batches",),
    ),
)
"""Every rule, in the order in which they are shown."""


def rules_for(kind: Kind) -> tuple[Rule, ...]:
    """Return the rules that apply to a kind of join, or to a table."""
    return tuple(rule for rule in RULES if kind in rule.kinds)
