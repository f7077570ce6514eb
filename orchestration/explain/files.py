"""Says what became of the records of a file, or of one of its lines."""

from pyspark.sql.types import StructType

from lakejoin.orchestration.explain.explanation import Explanation, Finding
from lakejoin.orchestration.explain.log_rows import MOST, Key, Logs, Row
from lakejoin.orchestration.explain.sentences import counted, some
from lakejoin.storage.delta_log.arrow_query import identifier, text_literal
from lakejoin.storage.lake.layout import QUARANTINE
from lakejoin.transforms.model.schemas import BATCH, POSITION, VERDICT
from lakejoin.transforms.model.specs import TableSpec


def place_of(text: str) -> tuple[str, int | None]:
    """Return the file and the line, or the partition and the offset, that a text names; None for a whole file."""
    file, _, line = text.rpartition(":")
    return (file, int(line)) if file and line.isdigit() else (text, None)


def key_at(logs: Logs, log: str, table: TableSpec, file: str, line: int) -> Key | None:
    """Return the key of the record that stands on a line, None where no batch has logged one."""
    where = f"{_of_file(file)} AND {POSITION}['line'] = {line}"
    rows = logs.rows(log, [*table.key], where, last_by=(BATCH,), most=1)
    columns = StructType([table.columns[name] for name in table.key])
    return Key(columns, tuple(rows[0][name] for name in table.key)) if rows else None


def explain_line(logs: Logs, table: TableSpec, file: str, line: int) -> Explanation:
    """Explain a line that no batch has logged: it is in quarantine, or was never read."""
    where = f"{_quarantined(table, file)} AND line = {line}"
    rows = logs.rows(QUARANTINE, _REFUSED, where, last_by=(BATCH,))
    called = f"{table.name} {file}:{line}"
    findings: tuple[Finding, ...] = ()
    answer = f"{called}: no batch has read such a record"
    if rows:
        last = rows[-1]
        answer = f"{called} is in quarantine since batch {last[BATCH]}: {last['reason']} ({last['detail']})"
        findings = (Finding(str(last["raw"]), {"raw": last["raw"]}),)
    return Explanation(table.name, [f"{file}:{line}"], logs.batch, bool(rows), answer, findings)


def explain_file(logs: Logs, log: str, table: TableSpec, file: str, own: str) -> Explanation:
    """Say what became of the records of a file: how many, by their status, and the first keys of each.

    own: the condition of the rows of the log that stand for a record of their own.
    """
    where = f"{_of_file(file)} AND {own}"
    rows = logs.ask(
        log,
        f"SELECT {VERDICT}, count(*) AS n, min({BATCH}) AS first, max({BATCH}) AS last FROM rows WHERE {where} "
        f"GROUP BY {VERDICT} ORDER BY n DESC, {VERDICT}",
    )
    findings = [_of_status(logs, log, table, where, row) for row in rows]
    refused = logs.ask(
        QUARANTINE,
        f"SELECT reason, count(DISTINCT line) AS n FROM rows WHERE {_quarantined(table, file)} GROUP BY reason "
        "ORDER BY n DESC, reason",
    )
    findings += [
        Finding(f"in quarantine, {row['reason']}: {counted(row['n'], 'record')}", {"reason": row["reason"]})
        for row in refused
    ]
    number = sum(row["n"] for row in rows)
    answer = f"{table.name} {file}: no batch has read a record of it"
    if rows:
        first, last = min(row["first"] for row in rows), max(row["last"] for row in rows)
        batches = f"batch {first}" if first == last else f"batches {first} to {last}"
        answer = f"{table.name} {file}: {counted(number, 'record')}, read in {batches}"
    return Explanation(table.name, [file], logs.batch, bool(rows), answer, tuple(findings))


def _of_status(logs: Logs, log: str, table: TableSpec, where: str, row: Row) -> Finding:
    status, keys = row[VERDICT], ", ".join(map(identifier, table.key))
    columns = StructType([table.columns[name] for name in table.key])
    found = logs.ask(
        log,
        f"SELECT DISTINCT {keys} FROM rows WHERE {where} AND {VERDICT} = {text_literal(status)} "
        f"ORDER BY {keys} LIMIT {MOST + 1}",
    )
    first = [str(Key(columns, tuple(one.values()))) for one in found[:MOST]]
    return Finding(
        f"{status}: {counted(row['n'], 'record')}, of {some(first, more=len(found) > MOST)}",
        {"status": status, "records": row["n"], "first": first},
    )


_REFUSED = (BATCH, "reason", "detail", "raw")


def _of_file(file: str) -> str:
    return f"{POSITION}['file'] = {text_literal(file)}"


def _quarantined(table: TableSpec, file: str) -> str:
    return f'"table" = {text_literal(table.name)} AND file = {text_literal(file)}'
