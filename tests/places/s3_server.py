"""An S3 server of its own for a test, on the loopback address, and how programs find it."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import boto3
from moto.server import ThreadedMotoServer

BUCKET = "lakes"
KEY, SECRET = "an-access-key", "a-secret-that-nobody-may-see"


@dataclass(frozen=True)
class S3Server:
    """A server with one bucket."""

    url: str

    @property
    def access(self) -> dict[str, str]:
        """Where it is, and with which keys, by the names that Amazon's SDKs read."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that finds it."""
        return {**os.environ, **self.access}

    def names(self, prefix: str) -> list[str]:
        """Return the names of all objects below a prefix."""
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", []))

    def download(self, prefix: str, folder: Path) -> None:
        """Copy all objects below a prefix to a folder."""
        client = self._client()
        for name in self.names(f"{prefix}/"):
            if name.endswith("/"):
                continue  # stands for a directory without files
            path = folder / name.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(BUCKET, name, str(path))

    def upload(self, folder: Path, prefix: str) -> None:
        """Copy the files of a folder below a prefix."""
        for path in folder.iterdir():
            self._client().upload_file(str(path), BUCKET, f"{prefix}/{path.name}")

    def _client(self):  # noqa: ANN202 - boto3 makes its classes when it runs
        return boto3.client(
            "s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )  # fmt: skip


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve S3 from this process's memory, until the block ends."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = S3Server(f"http://{host}:{port}")
    try:
        found._client().create_bucket(Bucket=BUCKET)
        yield found
    finally:
        # a server that is started later in this process would have its buckets
        urlopen(Request(f"{found.url}/moto-api/reset", method="POST")).close()
        server.stop()
