"""Reads single values of a configuration file: names, durations, dates, zones.

Each function takes the value as YAML gave it, returns what the model keeps, and raises `ValueError` with what is
allowed. `orchestration.config.pydantic_errors` adds where the value stood and what was found.
"""

import re
import zoneinfo
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainValidator, WithJsonSchema

from lakejoin.orchestration.config.problems import did_you_mean
from lakejoin.orchestration.config.schema.column_types import field_names, parse_type
from lakejoin.orchestration.config.schema.paths import resolve_file, resolve_lake, resolve_source
from lakejoin.storage.sources.database.queries import PASSWORD, SECRETS, USERNAME
from lakejoin.transforms.model import sql_settings
from lakejoin.transforms.parsing.source_position import SOURCE

NAME_PATTERN = "^[a-z][a-z0-9_]{0,62}$"
COLUMN_PATTERN = r"^(?!_lj_)(?!(_change_type|_commit_version|_commit_timestamp)$)[^ ,;{}()\n\t=]+$"
DURATION_PATTERN = r"^([0-9]+(?:\.[0-9]+)?) *(millisecond|second|minute|hour|day)s?$"
ZONE_OFFSET = re.compile(r"[+-](0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00")
RESERVED_NAMES = frozenset({"quarantine"})
"""Words that `show` already gives a meaning."""
RESERVED_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
RESERVED_PREFIX = "_lj_"
UNSTORABLE = frozenset(" ,;{}()\n\t=")
"""Signs that Delta Lake takes in no name, unless a table maps its columns, as ours do not."""
FIXED_CONF = frozenset(
    {
        "spark.databricks.delta.commit.idempotencyCheck.enabled",
        # our transactions find columns in files by their names
        "spark.databricks.delta.properties.defaults.columnMapping.mode",
    }
)
"""Settings beside those of Spark SQL that results depend on."""
_FIXED = "is fixed, because results depend on it; remove it"
_S3_KEY = re.compile(r"spark\.hadoop\.fs\.s3a\.(bucket\..+\.)?(access\.key|secret\.key|session\.token)")

_MILLISECONDS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_LONGEST_DAYS = 36_500
_SERVER = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
ENDS = ("earliest", "latest")
"""Where a topic begins and ends."""
_MASTER = re.compile(r"local|local\[.+\]|local-cluster\[.+\]|yarn|(spark|k8s)://.+")


def check_name(name: str) -> str:
    """A name of a pipeline, table or join."""
    if name.startswith("_"):
        raise ValueError("names that begin with '_' are reserved; begin with a letter a to z")
    if name in RESERVED_NAMES:
        raise ValueError(f"the name '{name}' is reserved (`lakejoin show {name}`); choose another")
    if not re.fullmatch(NAME_PATTERN, name):
        raise ValueError("a name is a letter a to z, then at most 62 of a to z, 0 to 9 and _")
    return name


def check_column_name(name: str) -> str:
    """A name of a declared column: any text that Delta Lake stores and nobody else uses."""
    if not name:
        raise ValueError("the name of a column may not be empty")
    folded = name.lower()
    if folded.startswith(RESERVED_PREFIX) or folded in RESERVED_COLUMNS:
        whose = "Lakejoin" if folded.startswith(RESERVED_PREFIX) else "Delta Lake"
        reserved = f"'{RESERVED_PREFIX}…', {', '.join(sorted(RESERVED_COLUMNS))}"
        raise ValueError(f"this column name is reserved for {whose} (reserved: {reserved})")
    return _storable(name)


def check_type(text: str) -> str:
    """A type of a column, kept as written."""
    for name in field_names(parse_type(text)):
        _storable(name)
    return text


def _storable(name: str) -> str:
    """Delta Lake refuses these signs only when the first batch is written, which is too late."""
    if signs := sorted(UNSTORABLE & set(name)):
        shown = " ".join(repr(sign) for sign in signs)
        raise ValueError(f"the name {name!r} holds {shown}, which Delta Lake stores in no name; rename it")
    return name


def parse_duration(value: Any) -> timedelta:
    """A duration such as `30 days`."""
    matched = re.fullmatch(DURATION_PATTERN, value) if isinstance(value, str) else None
    if matched is None:
        raise ValueError("expected a number and a unit, as '30 days', '2 hours' or '500 milliseconds' "
                         "(units: milliseconds, seconds, minutes, hours, days)")  # fmt: skip
    milliseconds = Decimal(matched[1]) * _MILLISECONDS[matched[2]]
    if milliseconds > _LONGEST_DAYS * _MILLISECONDS["day"]:
        raise ValueError(f"expected at most {_LONGEST_DAYS} days")
    return timedelta(milliseconds=float(milliseconds))


def parse_date(value: Any) -> date:
    """A date such as `2013-01-01`."""
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return date.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"no such date ({error}); expected YYYY-MM-DD") from error
    raise ValueError("expected a date as YYYY-MM-DD")


def parse_start(value: Any) -> date | datetime | str | dict[int, int]:
    """A day, an end of a topic, a time, or offsets by partition."""
    if isinstance(value, dict):
        # keys of the file are text
        if not value or any(not re.fullmatch("[0-9]+", f"{at}{offset}") for at, offset in value.items()):
            raise ValueError("expected an offset for each partition, such as {0: 1500, 1: 0}")
        return {int(partition): int(offset) for partition, offset in value.items()}
    if value in ENDS:
        return str(value)
    if not isinstance(value, str) or not re.search("[A-Za-z]", value):
        return parse_date(value)
    try:
        return parse_instant(value)
    except ValueError as error:
        raise ValueError(
            "expected a date as YYYY-MM-DD; of a topic also earliest, latest, a time with its zone such as "
            "2013-01-01T12:00:00Z, or an offset for each partition such as {0: 1500, 1: 0}"
        ) from error


def parse_servers(value: Any) -> str:
    """Brokers as `host:port`, apart by commas."""
    servers = value.split(",") if isinstance(value, str) else []
    if not servers or not all(_SERVER.fullmatch(server.strip()) for server in servers):
        raise ValueError("expected brokers as host:port, apart by commas, such as 'kafka1:9092,kafka2:9092'")
    return ",".join(server.strip() for server in servers)


def parse_topics(value: Any) -> tuple[str, ...]:
    """A topic, or a list of some."""
    names = (value,) if isinstance(value, str) else value
    if (
        not names
        or not isinstance(names, tuple)
        or not all(isinstance(name, str) and _TOPIC.fullmatch(name) for name in names)
    ):
        raise ValueError(
            "expected the name of a topic, or a list of names: letters, digits, '.', '_' and '-'"
        )
    return names


def check_registry(url: str) -> str:
    """Where a schema registry is."""
    if not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", url):
        raise ValueError(
            "expected an URL such as http://registry:8081, without user and password, which stand in the environment"
        )
    return url.rstrip("/")


def check_database(url: str) -> str:
    """The URL of a database."""
    if not re.fullmatch(r"jdbc:postgresql://[^\s/@?]+/[^\s/@?]+(\?\S*)?", url):
        raise ValueError(
            "expected a PostgreSQL database such as 'jdbc:postgresql://host:5432/shop', without user and password, "
            "which stand in the environment"
        )
    for name in re.findall("[?&]([^=&]+)=", url):
        if name.lower() in SECRETS:
            raise ValueError(f"{name!r} stands in the environment ({USERNAME}, {PASSWORD}); remove it")
    return url


def check_database_table(name: str) -> str:
    """A table or view of a database, perhaps with its schema; names in quotes may have any sign."""
    part = r'([A-Za-z_][A-Za-z0-9_$]*|"([^"]|"")+")'
    if not re.fullmatch(rf"{part}(\.{part})?", name):
        raise ValueError("expected 'table' or 'schema.table'; put a name with other signs in double quotes")
    return name


def check_select(sql: str) -> str:
    """A query."""
    if not re.match(r"\s*(select|with|table|values)\b", sql, re.IGNORECASE):
        raise ValueError("expected a query that begins with SELECT or WITH")
    return sql


def parse_instant(value: Any) -> datetime:
    """A time with its zone, such as `2013-01-01T12:00:00Z`."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError("expected a time with its zone, such as 2013-01-01T12:00:00Z")
    return found


def parse_sequence(value: Any) -> Any:
    """`source` alone, or the names of a list."""
    return (SOURCE,) if value == SOURCE else value


def check_source_table(name: str) -> str:
    """A table of a database, perhaps with its schema; `*` stands for any letters."""
    if not re.fullmatch(r"[^.]+(\.[^.]+)?", name):
        raise ValueError("expected 'table' or 'schema.table', with '*' for any letters")
    return name


def check_zone(name: str) -> str:
    """A time zone by its name in the time zone database, or an offset from UTC."""
    if ZONE_OFFSET.fullmatch(name):
        return name
    zones = zoneinfo.available_timezones()
    if name in zones:
        return name
    forms = "a name such as 'Europe/Berlin' or an offset such as '+02:00'"
    raise ValueError(f"no time zone is named {name!r}{did_you_mean(name, zones)} (allowed: {forms})")


def check_master(master: str) -> str:
    """A master that Spark can start on or connect to."""
    if not _MASTER.fullmatch(master):
        raise ValueError("expected local, local[N], local[*], yarn, spark://HOST:PORT or k8s://URL")
    return master


def check_setting(name: str) -> str:
    """A name of a setting of Spark that may be changed."""
    if not name.startswith("spark."):
        raise ValueError("is no setting of Spark; their names begin with 'spark.'")
    if name == "spark.master":
        raise ValueError("stands in `master` beside `conf`, not in it")
    if name in FIXED_CONF:
        raise ValueError(_FIXED)
    if name.startswith(sql_settings.PREFIX):
        _check_sql_setting(name)
    if _S3_KEY.fullmatch(name):
        raise ValueError(
            "is a secret, and only Spark would know it; set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
            "AWS_SESSION_TOKEN in the environment"
        )
    return name


def _check_sql_setting(name: str) -> None:
    match sql_settings.filed(name):
        case "pinned":
            raise ValueError(_FIXED)
        case "refused":
            raise ValueError("is left as Spark has it, because results may depend on it; remove it")
        case None:
            raise ValueError(
                "is not among the settings of Spark SQL that are known to leave results as they are; remove it"
            )


def setting_text(value: Any) -> str:
    """The value of a setting as Spark takes it."""
    if not isinstance(value, str | bool | int):
        raise ValueError("expected text, a whole number, true or false; put anything else in quotes")
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_result_column(value: Any) -> Any:
    """An entry of `select`: a column or `*`, or names of columns with what each is."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not value:
        raise ValueError("expected a column, '*', '* except (…)' or {name: SQL expression}")
    for name, text in value.items():
        check_column_name(name)
        if not isinstance(text, str):
            raise ValueError(f"expected an SQL expression for {name!r}; put it in quotes")
    return value


Name = Annotated[str, AfterValidator(check_name), WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})]
ColumnName = Annotated[
    str, AfterValidator(check_column_name), WithJsonSchema({"type": "string", "pattern": COLUMN_PATTERN})
]
ColumnType = Annotated[
    str,
    AfterValidator(check_type),
    WithJsonSchema({"type": "string", "examples": ["bigint", "decimal(12,2)"]}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]
Day = Annotated[date, BeforeValidator(parse_date), WithJsonSchema({"type": "string", "format": "date"})]
_OFFSETS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}
Start = Annotated[
    date | datetime | str | dict[int, int],
    PlainValidator(parse_start),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date"}, {"enum": [*ENDS]},
                              {"type": "string", "format": "date-time"}, _OFFSETS]}),
]  # fmt: skip
Servers = Annotated[str, BeforeValidator(parse_servers)]
Topics = Annotated[
    tuple[str, ...],
    PlainValidator(parse_topics),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
    ),
]
DatabaseUrl = Annotated[str, AfterValidator(check_database)]
DatabaseTable = Annotated[str, AfterValidator(check_database_table)]
Select = Annotated[str, AfterValidator(check_select)]
ResultColumn = Annotated[
    str | dict[str, str],
    BeforeValidator(check_result_column),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            ]
        }
    ),
]
Registry = Annotated[str, AfterValidator(check_registry)]
Instant = Annotated[
    datetime, BeforeValidator(parse_instant), WithJsonSchema({"type": "string", "format": "date-time"})
]
Sequence = Annotated[
    tuple[str, ...],
    BeforeValidator(parse_sequence),
    WithJsonSchema({"anyOf": [{"const": SOURCE}, {"type": "array", "items": {"type": "string"}}]}),
]
SourceTable = Annotated[str, AfterValidator(check_source_table)]
Zone = Annotated[str, AfterValidator(check_zone)]
Master = Annotated[str, AfterValidator(check_master)]
Setting = Annotated[
    str, AfterValidator(check_setting), WithJsonSchema({"type": "string", "pattern": r"^spark\."})
]
SettingText = Annotated[
    str, BeforeValidator(setting_text), WithJsonSchema({"type": ["string", "boolean", "integer"]})
]
LakePath = Annotated[str, AfterValidator(resolve_lake)]
LocalFile = Annotated[str, AfterValidator(resolve_file)]
SourcePath = Annotated[str, AfterValidator(resolve_source)]
