"""How much a table holds: the files of its current version, and not what older versions left on the disk."""

from pathlib import Path

from deltalake import DeltaTable


def live_bytes(table: Path) -> int:
    """Bytes of the data files of a Delta table's current version, as its log says; 0 where there is no table."""
    if not (table / "_delta_log").is_dir():
        return 0
    sizes = DeltaTable(str(table)).get_add_actions().column("size_bytes").to_pylist()
    return sum(int(size) for size in sizes)


def tables_below(folder: Path) -> list[Path]:
    """The Delta tables in a folder at any depth, in the order of their names."""
    return sorted(log.parent for log in folder.rglob("_delta_log"))
