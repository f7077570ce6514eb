"""The shop of the fault tests with its lake and its sources on S3."""

from pathlib import Path

from faults.shop import make_shop
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.storage.sources.files.path_patterns import fixed
from places.conftest import DAYS
from places.s3_server import BUCKET, S3Server


def make_remote_shop(folder: Path, server: S3Server, settings: str) -> Path:
    """Write the shop's configuration with everything on S3, put its sources there, and return the file.

    `settings`: the YAML of `spark`.
    """
    path = make_shop(folder, DAYS).path
    place = f"s3a://{BUCKET}/{folder.name}"
    text = path.read_text().replace("./lake", f'"{place}/lake"')
    for source in ("orders", "customers"):
        server.upload(folder / source, f"{folder.name}/{source}")
        text = text.replace(f'"{source}/', f'"{fixed(place)}/{source}/')
    path.write_text(text + settings)
    return path


def downloaded(path: Path, server: S3Server) -> Pipeline:
    """Copy a lake from S3 beside its configuration, and return the pipeline that has it there."""
    server.download(f"{path.parent.name}/lake", path.parent / "lake")
    copy = path.with_name("copy.yaml")
    copy.write_text(path.read_text().replace(f"s3a://{BUCKET}/{path.parent.name}/lake", "./lake"))
    return load(copy)
