"""Provides the JARs and settings by which Spark reaches lakes and sources at `s3a://`.

Spark comes without them. Hadoop's own choice is Amazon's whole SDK, some 600 MB; the parts that S3A calls are 10 MB.
How commits stay whole on S3 stands in docs/decisions/0007.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from lakejoin.storage.spark.jars import Resolve, provide_folder

SCHEME = "s3a://"
HADOOP, SDK = "3.5.0", "2.35.4"
"""The release of Hadoop that Spark ships, and the release of Amazon's SDK that it was built with."""
COORDINATES = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    f"software.amazon.awssdk:s3-transfer-manager:{SDK}",
    f"software.amazon.awssdk:sts:{SDK}",
)
NOT_FETCHED = (
    "software.amazon.awssdk:bundle",  # the whole SDK
    *("io.netty*:*", "org.apache.httpcomponents*:*", "org.slf4j*:*", "commons*:*"),  # shipped with Spark
    "org.wildfly*:*",  # a second way to encrypt connections
)
_ENDPOINTS, _REGIONS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), ("AWS_REGION", "AWS_DEFAULT_REGION")
_HADOOP = "spark.hadoop.fs.s3a."


def on_s3(places: Iterable[str]) -> bool:
    """Tell whether any of these paths and URIs is on S3."""
    return any(place.startswith(SCHEME) for place in places)


def provide_s3_jars(cache: Path, resolve: Resolve) -> list[Path]:
    """Return the paths of the JARs that reach S3, fetched by `resolve` at the first time. Raises `JarsNotFound`."""
    folder = cache / f"s3-hadoop-{HADOOP}-sdk-{SDK}"
    return provide_folder(folder, "the JARs that reach S3", COORDINATES, resolve)


def s3_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session that works on S3.

    `environment` supplies endpoint and region, under the names that Amazon's SDKs read. Keys are no settings, which
    are shown and logged: Spark takes them from the environment, too, and hands them to its executors.
    """
    settings = {
        # A rename copies on S3: so each task brings its own files in place, instead of the driver one after the other.
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    }
    if endpoint := _first(environment, _ENDPOINTS):
        # a server that is not Amazon's, and whose buckets need no host names of their own
        settings |= {f"{_HADOOP}endpoint": endpoint, f"{_HADOOP}path.style.access": "true"}
    if region := _first(environment, _REGIONS):
        settings[f"{_HADOOP}endpoint.region"] = region
    return settings


def _first(environment: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)
