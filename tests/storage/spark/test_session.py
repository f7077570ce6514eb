"""Which settings a session gets, and that the session of the tests speaks Delta."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakejoin.storage.spark.jars import cache_directory
from lakejoin.storage.spark.session import _environment, changed_settings, start_session
from lakejoin.storage.spark.start import NO_CONF, SETTINGS, settings
from lakejoin.transforms.model.sql_settings import PINNED

JARS = [Path("/cache/a.jar"), Path("/cache/b.jar")]
CACHE = Path("/cache")


def test_settings_of_the_user_win() -> None:
    """Any setting of ours can be set otherwise in the configuration file."""
    ours = settings("local[2]", JARS, CACHE, {"spark.driver.memory": "7g", "spark.ui.enabled": "true"})

    assert ours["spark.driver.memory"] == "7g"
    assert ours["spark.ui.enabled"] == "true"
    assert ours["spark.sql.session.timeZone"] == SETTINGS["spark.sql.session.timeZone"] == "UTC"


def test_pinned_settings_win() -> None:
    """What a value is, is nobody's to choose."""
    assert settings("local[2]", JARS, CACHE, {"spark.sql.ansi.enabled": "false"}).items() >= PINNED.items()


@pytest.mark.parametrize(
    ("key", "value", "end"),
    [
        ("spark.driver.extraClassPath", "/mine.jar", "/cache/a.jar:/cache/b.jar:/mine.jar"),
        ("spark.jars", "/mine.jar", "/mine.jar"),
        ("spark.sql.extensions", "my.Extension", "DeltaSparkSessionExtension,my.Extension"),
        ("spark.driver.extraJavaOptions", "-Xss4m", "log4j2.properties -Xss4m"),
        ("spark.executor.extraJavaOptions", "-Xss4m", "-XX:-DontCompileHugeMethods -Xss4m"),
    ],
)
def test_settings_that_are_lists_are_appended(key: str, value: str, end: str) -> None:
    """A user who adds a JAR, an extension or a Java option does not lose Delta or the log settings by it."""
    assert settings("local[2]", JARS, CACHE, {key: value})[key].endswith(end)


@pytest.mark.parametrize(
    ("master", "jars", "name", "value"),
    [
        ("local[2]", JARS, "spark.driver.extraClassPath", "/cache/a.jar:/cache/b.jar"),
        ("spark://host:7077", JARS, "spark.jars", "/cache/a.jar,/cache/b.jar"),
        ("local[2]", [Path("/a:b/c.jar")], "spark.jars", "/a:b/c.jar"),
    ],
)
def test_jars_are_on_the_class_path_unless_executors_lack_them(
    master: str, jars: list[Path], name: str, value: str
) -> None:
    """A cluster's are sent them; a colon would part a path. A user's own are beside them in either way."""
    assert settings(master, jars, CACHE, {})[name] == value
    for mine in ("spark.jars", "spark.driver.extraClassPath"):
        assert settings(master, jars, CACHE, {mine: "/mine.jar"})[mine].endswith("/mine.jar")


@pytest.mark.parametrize(
    ("told", "variable", "found"),
    [
        ("", "", "-XX:+UseParallelGC"),
        ("-Xss4m -XX:+UseGCOverheadLimit", "", "-XX:+UseParallelGC"),
        ("-XX:+UseG1GC", "", "-XX:+UseG1GC"),
        ("", "-Xss4m -XX:+UseZGC", None),
    ],
)
def test_jvm_is_told_one_garbage_collector(
    told: str, variable: str, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two would keep it from starting: whoever names one, in the file or in Java's own variable, has it."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", variable)
    conf = {"spark.driver.extraJavaOptions": told} if told else {}

    options = settings("local[2]", JARS, CACHE, conf)["spark.driver.extraJavaOptions"].split()

    chosen = [o for o in options if o.startswith("-XX:+Use") and o.endswith("GC")]
    # ends like a collector, and is a setting of ours
    assert [o for o in chosen if o != "-XX:+UseAdaptiveSizePolicyWithSystemGC"] == ([found] if found else [])


@pytest.mark.parametrize(
    ("master", "conf", "room"),
    [
        ("local[2]", NO_CONF, ["-XX:MaxNewSize=150m"]),
        ("local[1]", NO_CONF, ["-XX:MaxNewSize=150m"]),
        ("local[8]", NO_CONF, ["-XX:MaxNewSize=600m"]),
        (
            "local[2]",
            {"spark.driver.extraJavaOptions": "-XX:MaxNewSize=1g"},
            ["-XX:MaxNewSize=150m", "-XX:MaxNewSize=1g"],
        ),
        ("local[2]", {"spark.driver.extraJavaOptions": "-XX:+UseZGC"}, []),
        ("spark://host:7077", NO_CONF, []),
    ],
)
def test_local_jvm_keeps_little_room_that_it_cannot_give_back(
    master: str, conf: dict[str, str], room: list[str]
) -> None:
    """By its cores; of two sizes Java takes the last one, which is the user's. Other collectors give it back."""
    options = settings(master, JARS, CACHE, conf)["spark.driver.extraJavaOptions"].split()

    assert [option for option in options if "NewSize" in option] == room
    assert ("-XX:+UseAdaptiveSizePolicyWithSystemGC" in options) == bool(room)


@pytest.mark.bad_input(34)
@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", 4),
        ("local[3]", 12),
        ("local[3,2]", 12),
        ("local[*]", 4 * (os.cpu_count() or 1)),
    ],
)
def test_local_master_listens_on_loopback_only_with_few_partitions(master: str, partitions: int) -> None:
    """On one machine nobody else can reach the driver, and shuffles suit its cores."""
    local = settings(master, JARS, CACHE, NO_CONF)

    assert local["spark.driver.bindAddress"] == local["spark.driver.host"] == "127.0.0.1"
    assert local["spark.sql.shuffle.partitions"] == str(partitions)


@pytest.mark.parametrize(
    "master", ["yarn", "spark://host:7077", "k8s://https://host", "local-cluster[2,1,512]"]
)
def test_cluster_master_keeps_sparks_own_network_and_partitions(master: str) -> None:
    """Executors on other machines must reach the driver."""
    assert (
        settings(master, JARS, CACHE, NO_CONF)
        .keys()
        .isdisjoint({"spark.driver.bindAddress", "spark.driver.host", "spark.sql.shuffle.partitions"})
    )


def test_cache_is_in_xdg_cache_home_or_below_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty XDG_CACHE_HOME counts as none, as the XDG specification says."""
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))

    assert cache_directory({"XDG_CACHE_HOME": "/var/cache"}) == Path("/var/cache/lakejoin")
    assert cache_directory({"XDG_CACHE_HOME": ""}) == Path("/home/me/.cache/lakejoin")
    assert cache_directory({}) == Path("/home/me/.cache/lakejoin")


def test_environment_is_put_back_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs started later see the JAVA_HOME of the user, or none where none was."""
    monkeypatch.setenv("JAVA_HOME", "/users/java")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)

    def start_and_fail() -> None:
        with _environment({"JAVA_HOME": "/ours", "SPARK_LOCAL_IP": "127.0.0.1"}):
            assert os.environ["JAVA_HOME"] == "/ours"
            raise OSError("no memory")

    with pytest.raises(OSError, match="no memory"):
        start_and_fail()

    assert os.environ["JAVA_HOME"] == "/users/java"
    assert "SPARK_LOCAL_IP" not in os.environ


@pytest.mark.spark
def test_session_writes_merges_and_reads_delta_tables(spark: SparkSession, tmp_path: Path) -> None:
    """The JARs, the extension and the catalog fit together."""
    table = f"delta.`{tmp_path}`"
    spark.range(3).write.format("delta").save(str(tmp_path))
    spark.sql(
        f"MERGE INTO {table} AS old USING (SELECT explode(array(2, 5)) AS id) AS new ON old.id = new.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )

    assert sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect()) == [0, 1, 5]


@pytest.mark.spark
def test_session_that_runs_is_returned_by_a_second_start(spark: SparkSession) -> None:
    """Several parts of one process share one session, the first one's master included."""
    partitions = {"spark.sql.shuffle.partitions": spark.conf.get("spark.sql.shuffle.partitions") or ""}

    assert start_session("local[1]", partitions) is spark
    assert spark.sparkContext.master == "local[2]"


@pytest.mark.spark
def test_settings_of_whoever_used_the_session_before_are_put_back(spark: SparkSession) -> None:
    """The next start pins what is pinned, and what is refused is as Spark has it; the rest is left alone."""
    said = {
        "spark.sql.variable.substitute": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.javaCharsets": "true",
        "spark.sql.broadcastTimeout": "299",
    }
    with changed_settings(spark, said):
        start_session("local[2]", {"spark.sql.shuffle.partitions": "2"})

        assert {name: spark.conf.get(name) for name in said} == {
            "spark.sql.variable.substitute": "false",
            "spark.sql.ansi.enabled": "true",
            "spark.sql.legacy.javaCharsets": "false",
            "spark.sql.broadcastTimeout": "299",
        }


_DEFAULTS = """
from lakejoin.storage.spark.session import start_session
spark = start_session("local[1]", {"spark.driver.extraJavaOptions": "-Dspark.sql.legacy.sizeOfNull=false"})
names = ["variable.substitute", "ansi.enabled", "legacy.javaCharsets", "legacy.sizeOfNull", "broadcastTimeout"]
print([spark.conf.get("spark.sql." + name) for name in names])
"""


@pytest.mark.spark
@pytest.mark.slow
def test_defaults_of_the_machine_change_no_value(tmp_path: Path) -> None:
    """A spark-defaults.conf that the variable SPARK_CONF_DIR names, and options of Java, have no say in values."""
    lines = (
        "variable.substitute true",
        "ansi.enabled false",
        "legacy.javaCharsets true",
        "broadcastTimeout 299",
    )
    (tmp_path / "spark-defaults.conf").write_text("".join(f"spark.sql.{line}\n" for line in lines))
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "SPARK_CONF_DIR": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", _DEFAULTS], env=os.environ | path, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "['false', 'true', 'false', 'true', '299']"
