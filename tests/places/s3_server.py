"""An S3 server of its own for a test, on the loopback address, and how programs find it."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "lakes"
SECRET = "a-secret-that-nobody-may-see"


@dataclass(frozen=True)
class S3Server:
    """A server with one empty bucket."""

    url: str
    environment: dict[str, str] = field(init=False)
    """Where it is, and with which keys, by the names that Amazon's SDKs read."""

    def __post_init__(self) -> None:
        """Put the server's address beside the environment of this process."""
        access = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "an-access-key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        object.__setattr__(self, "environment", {**os.environ, **access})

    def names(self, prefix: str) -> list[str]:
        """Return the names of all objects below a prefix."""
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", []))

    def download(self, prefix: str, folder: Path) -> None:
        """Copy all objects below a prefix to a folder."""
        client = self._client()
        for name in self.names(f"{prefix}/"):
            path = folder / name.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(BUCKET, name, str(path))

    def copy(self, prefix: str, target: str) -> None:
        """Copy all objects below a prefix to another one."""
        client = self._client()
        for name in self.names(f"{prefix}/"):
            source = {"Bucket": BUCKET, "Key": name}
            client.copy(source, BUCKET, f"{target}/{name.removeprefix(f'{prefix}/')}")

    def _client(self):  # noqa: ANN202 - boto3 makes its classes when it runs
        return boto3.client(
            "s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="an-access-key",
            aws_secret_access_key=SECRET,
        )  # fmt: skip


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve S3 from this process's memory, until the block ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        found = S3Server(f"http://{host}:{port}")
        found._client().create_bucket(Bucket=BUCKET)
        yield found
    finally:
        server.stop()
