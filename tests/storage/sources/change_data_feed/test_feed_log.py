"""Which versions of a Delta table wait, and when its feed cannot be followed. The tables are written by delta-rs."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakejoin.storage.errors import SourceChanged, SourceNotFound, SourceRefused, SourceTrimmed
from lakejoin.storage.sources.change_data_feed.feed_log import NOTHING, Feed

FEED_ON = {"delta.enableChangeDataFeed": "true"}


def rows(*values: tuple[int, str]) -> pa.Table:
    """Rows of a table with a number and a name."""
    numbers, names = zip(*values, strict=True)
    return pa.table({"id": pa.array(numbers, pa.int64()), "name": pa.array(names, pa.string())})


def create(path: Path, properties: Mapping[str, str] = FEED_ON) -> str:
    """A table at version 0 with two rows."""
    write_deltalake(str(path), rows((1, "a"), (2, "b")), configuration=dict(properties))
    return str(path)


def commit(path: Path, number: int, *actions: Mapping[str, object]) -> None:
    """Write a version by hand: what other writers of Delta do, and delta-rs does not."""
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    (path / "_delta_log" / f"{number:020d}.json").write_text(text)


def test_table_is_first_read_as_it_is(tmp_path: Path) -> None:
    """Whatever led to it: its rows at the newest version, and that version."""
    path = create(tmp_path / "t")
    write_deltalake(path, rows((3, "c")), mode="append")

    found = Feed(path).whole()

    assert (found.after, found.number, found.records) == (NOTHING, 1, 3)
    assert found.identity == str(DeltaTable(path).metadata().id)
    assert found.modified > 0


def test_versions_after_the_last_one_read_wait(tmp_path: Path) -> None:
    """Each with about as many rows as its feed has; one that changed none is there as well."""
    path = create(tmp_path / "t")
    first = Feed(path).whole()
    assert Feed(path).after(first.number, first.identity) == []
    write_deltalake(path, rows((3, "c"), (4, "d"), (5, "e")), mode="append")
    table = DeltaTable(path)
    table.update(updates={"name": "'x'"}, predicate="id = 1")
    table.optimize.compact()

    found = Feed(path).after(first.number, first.identity)

    assert [(version.after, version.number) for version in found] == [(0, 1), (1, 2), (2, 3)]
    assert [version.records for version in found] == [3, 2, 0]  # the update has two halves
    assert [v.records for v in Feed(path).after(2, first.identity)] == [0]


def test_rows_that_a_deletion_vector_marks_are_counted(tmp_path: Path) -> None:
    """A file that comes back with more rows marked than it went with had these deleted."""
    path = tmp_path / "t"
    first = Feed(create(path)).whole()
    (file,) = [line["add"] for line in log(path, 0) if "add" in line]
    vector = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
              "sizeInBytes": 40, "cardinality": 1}  # fmt: skip
    removed = {"path": file["path"], "dataChange": True, "deletionTimestamp": 1}
    commit(path, 1, {"remove": removed}, {"add": {**file, "deletionVector": vector}})
    commit(path, 2, {"remove": {**removed, "deletionVector": vector, "stats": file["stats"]}})
    commit(path, 3, {"remove": {**removed, "dataChange": False}}, {"add": {**file, "dataChange": False}})

    assert [version.records for version in Feed(str(path)).after(0, first.identity)] == [1, 1, 0]


def log(path: Path, number: int) -> list[dict[str, dict[str, object]]]:
    """The actions of a version."""
    text = (path / "_delta_log" / f"{number:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_rows_of_a_file_without_statistics_are_counted_in_its_footer(tmp_path: Path) -> None:
    """A removed file has none where its writer left them out."""
    path = tmp_path / "t"
    first = Feed(create(path)).whole()
    (file,) = [line["add"] for line in log(path, 0) if "add" in line]
    commit(path, 1, {"remove": {"path": file["path"], "dataChange": True, "deletionTimestamp": 1}})

    assert [version.records for version in Feed(str(path)).after(0, first.identity)] == [2]


def test_table_without_a_feed_is_refused(tmp_path: Path) -> None:
    """The message has the statement that turns it on."""
    path = create(tmp_path / "t", {})

    with pytest.raises(SourceRefused, match=r"keeps no change feed.*ALTER TABLE delta\..*SET TBLPROPERTIES"):
        Feed(path).whole()


@pytest.mark.bad_input(37)
def test_feed_that_was_turned_off_is_refused(tmp_path: Path) -> None:
    """What happened meanwhile is not known, also where it was turned on again."""
    path = tmp_path / "t"
    first = Feed(create(path)).whole()
    (metadata,) = [line["metaData"] for line in log(path, 0) if "metaData" in line]
    commit(path, 1, {"metaData": {**metadata, "configuration": {}}})
    commit(path, 2, {"metaData": metadata})

    with pytest.raises(
        SourceRefused, match=r"was turned off with version 1.*point `lake` at a new directory"
    ):
        Feed(str(path)).after(0, first.identity)


@pytest.mark.bad_input(37)
def test_missing_version_of_the_log_is_told(tmp_path: Path) -> None:
    """Delta removes old ones some time after a checkpoint."""
    path = create(tmp_path / "t")
    first = Feed(path).whole()
    for number in (3, 4, 5):
        write_deltalake(path, rows((number, "c")), mode="append")
    DeltaTable(path).create_checkpoint()
    for number in (0, 1):
        (tmp_path / "t" / "_delta_log" / f"{number:020d}.json").unlink()

    message = (
        "trimmed: version 1 of the log is gone; versions up to 0 were read, and the table is at version 3"
    )
    with pytest.raises(SourceTrimmed, match=message):
        Feed(path).after(first.number, first.identity)


@pytest.mark.bad_input(38)
@pytest.mark.parametrize("checkpoint", [2, 3], ids=["told by a checkpoint", "told by none"])
def test_range_whose_first_state_the_log_no_longer_tells_is_refused(tmp_path: Path, checkpoint: int) -> None:
    """Its commits may all be there: Delta removes those before it, and keeps a checkpoint that comes later."""
    path = create(tmp_path / "t")
    first = Feed(path).whole()
    for number in (3, 4, 5):
        write_deltalake(path, rows((number, "c")), mode="append")
        if number - 2 == checkpoint:
            DeltaTable(path).create_checkpoint()
    for number in (0, 1):
        (tmp_path / "t" / "_delta_log" / f"{number:020d}.json").unlink()

    if checkpoint == 2:
        assert [version.number for version in Feed(path).after(1, first.identity)] == [2, 3]
        return
    message = (
        r"the state of version 2 \(a checkpoint, the commits after it\) is gone; versions up to 1 were read"
    )
    with pytest.raises(SourceTrimmed, match=message):
        Feed(path).after(1, first.identity)
    with pytest.raises(SourceTrimmed, match=message):
        Feed(path).check_range(1, 3, first.identity)


def test_version_with_other_columns_needs_the_state_before_it(tmp_path: Path) -> None:
    """What it took is read from there, by the columns that it had."""
    path = create(tmp_path / "t")
    first = Feed(path).whole()
    other = pa.table({"id": ["1"]})
    write_deltalake(path, rows((3, "c")), mode="append")
    write_deltalake(path, other, mode="overwrite", schema_mode="overwrite")
    DeltaTable(path).create_checkpoint()
    assert [version.number for version in Feed(path).after(1, first.identity)] == [2]
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").unlink()

    with pytest.raises(SourceTrimmed, match=r"the state of version 1 .* is gone; versions up to 1 were read"):
        Feed(path).after(1, first.identity)


@pytest.mark.bad_input(37)
@pytest.mark.parametrize("feed_file", [True, False], ids=["file of the feed", "data file"])
def test_vacuumed_file_is_told(tmp_path: Path, *, feed_file: bool) -> None:
    """A version is read from its own files of the feed, or else from those that came and went."""
    path = create(tmp_path / "t")
    first = Feed(path).whole()
    if feed_file:
        DeltaTable(path).update(updates={"name": "'x'"}, predicate="id = 1")
        (gone,) = (tmp_path / "t" / "_change_data").glob("*.parquet")
    else:
        write_deltalake(path, rows((3, "c")), mode="overwrite")
        (gone,) = [tmp_path / "t" / line["add"]["path"] for line in log(tmp_path / "t", 0) if "add" in line]
    assert len(Feed(path).after(first.number, first.identity)) == 1
    gone.unlink()

    with pytest.raises(SourceTrimmed, match=rf"{gone.name}, which version 1 needs, is gone"):
        Feed(path).after(first.number, first.identity)
    with pytest.raises(SourceTrimmed, match=gone.name):
        Feed(path).check_range(0, 1, first.identity)


@pytest.mark.parametrize("vector_of", ["add", "remove"])
def test_vacuumed_deletion_vector_is_told(tmp_path: Path, vector_of: str) -> None:
    """A version is read from the vectors of the files that came with it, and of those that went."""
    path = tmp_path / "t"
    first = Feed(create(path)).whole()
    (file,) = [line["add"] for line in log(path, 0) if "add" in line]
    # the vector and the file of the protocol's own example
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40,
              "cardinality": 1}  # fmt: skip
    lies = path / "ab" / "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    lies.parent.mkdir()
    lies.touch()
    removed = {"path": file["path"], "dataChange": True, "deletionTimestamp": 1}
    actions = {"remove": removed, "add": file}
    actions[vector_of] = {**actions[vector_of], "deletionVector": vector}
    commit(path, 1, *[{kind: action} for kind, action in actions.items()])
    assert len(Feed(str(path)).after(0, first.identity)) == 1
    lies.unlink()

    with pytest.raises(SourceTrimmed, match=rf"ab/{lies.name}, which version 1 needs, is gone"):
        Feed(str(path)).after(0, first.identity)


def test_deletion_vector_of_a_planned_whole_table_must_be_there(tmp_path: Path) -> None:
    """A batch that was cut off reads the table with its vectors, or not at all."""
    path = tmp_path / "t"
    first = Feed(create(path)).whole()
    (file,) = [line["add"] for line in log(path, 0) if "add" in line]
    features = {
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed"],
    }
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40,
              "cardinality": 1}  # fmt: skip
    removed = {"path": file["path"], "dataChange": True, "deletionTimestamp": 1}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    added = {**file, "deletionVector": vector}
    commit(path, 1, {"protocol": protocol}, {"remove": removed}, {"add": added})

    with pytest.raises(SourceTrimmed, match=r"a deletion vector, which version 1 needs .*, is gone"):
        Feed(str(path)).check_range(NOTHING, 1, first.identity)


def test_whole_table_that_was_planned_must_be_there(tmp_path: Path) -> None:
    """A batch that was cut off reads the version it was planned with, or none."""
    path = create(tmp_path / "t")
    first = Feed(path).whole()
    write_deltalake(path, rows((3, "c")), mode="overwrite")
    Feed(path).check_range(NOTHING, 0, first.identity)
    (old,) = [tmp_path / "t" / line["add"]["path"] for line in log(tmp_path / "t", 0) if "add" in line]
    old.unlink()

    with pytest.raises(SourceTrimmed, match=f"{old.name}, which version 0 needs, is gone; nothing was read"):
        Feed(path).check_range(NOTHING, 0, first.identity)


@pytest.mark.bad_input(38)
def test_table_that_was_made_anew_is_another(tmp_path: Path) -> None:
    """Its versions count from 0 again: told by their number, or by the name that Delta gave the table."""
    create(tmp_path / "new")
    path = create(tmp_path / "t")
    old = Feed(path).whole()

    with pytest.raises(SourceChanged, match="is at version 0 now, and version 1 was read"):
        Feed(path).after(1, old.identity)
    with pytest.raises(SourceChanged, match=f"another table.*expected {old.identity}"):
        Feed(str(tmp_path / "new")).after(0, old.identity)
    with pytest.raises(SourceChanged, match="another table"):
        Feed(str(tmp_path / "new")).check_range(NOTHING, 0, old.identity)


def test_table_that_went_on_from_a_copy_is_not_followed(tmp_path: Path) -> None:
    """Its versions have the numbers of those that were lost, and nobody read them."""
    path = create(tmp_path / "t")
    shutil.copytree(path, tmp_path / "copy")
    write_deltalake(path, rows((3, "c")), mode="append")
    (read,) = Feed(path).after(0, Feed(path).identity)
    for number in (4, 5):
        write_deltalake(str(tmp_path / "copy"), rows((number, "d")), mode="append")

    assert Feed(path).after(1, read.identity, read.modified) == []
    with pytest.raises(
        SourceChanged, match=r"version 1 was committed at .*, and the one that was read at .* a copy"
    ):
        Feed(str(tmp_path / "copy")).after(1, read.identity, read.modified)
    with pytest.raises(SourceChanged, match="put back from a copy"):
        Feed(str(tmp_path / "copy")).check_range(0, 1, read.identity, read.modified)


def test_commit_need_not_say_when_it_was_made(tmp_path: Path) -> None:
    """Delta does not ask its writers to."""
    path = create(tmp_path / "t")
    (file,) = [line["add"] for line in log(Path(path), 0) if "add" in line]
    commit(Path(path), 1, {"add": {**file, "dataChange": False}})
    found = Feed(path).whole()
    assert (found.number, found.records, found.modified) == (1, 2, 0)
    assert Feed(path).after(1, found.identity, found.modified) == []


def test_directory_without_a_table_is_told(tmp_path: Path) -> None:
    """A pipeline may be started before the table is there."""
    with pytest.raises(SourceNotFound, match="is no Delta table"):
        Feed(str(tmp_path / "t"))
