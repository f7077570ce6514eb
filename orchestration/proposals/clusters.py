"""Groups files into the sources of tables, by their names and by what their samples say."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lakejoin.orchestration.proposals import paths
from lakejoin.orchestration.proposals.file_samples import FileSample, Unreadable
from lakejoin.orchestration.proposals.tables import Sample
from lakejoin.storage.errors import SourceError
from lakejoin.storage.sources.files.file_names import out_of_order, without_keys
from lakejoin.storage.sources.files.path_patterns import FilePattern

FILES = 5
"""How many files of those whose names are alike are looked at."""


@dataclass(frozen=True)
class Cluster:
    """Files that are one source."""

    files: tuple[str, ...]
    """All of them, as the configuration would name each."""
    samples: tuple[FileSample, ...]
    """What those say that were looked at."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What files have in common that are of one source though their names are not alike."""
        first = self.samples[0]
        tables = {record.table for sample in self.samples for record in sample.records if record.table}
        return first.format, paths.folder_of(self.files[0]), paths.words(self.files[0]), frozenset(tables)


def samples_of(files: Iterable[str], read: Callable[[str], FileSample]) -> tuple[list[Sample], list[str]]:
    """Return what lies at the paths that stand for files, and a line for each that is left out.

    `files`: as the configuration would name them. `read`: looks at one of them, and may raise `SourceError`.
    """
    alike: dict[str, list[str]] = {}
    for file in without_keys(sorted(files), str):
        alike.setdefault(paths.skeleton(file), []).append(file)
    clusters: dict[tuple[object, ...], Cluster] = {}
    left_out: list[str] = []
    for group in alike.values():
        samples, problems = _looked_at(group, read)
        left_out += problems
        if samples:
            found = Cluster(tuple(group), tuple(samples))
            same = clusters.get(found.identity)
            clusters[found.identity] = found if same is None else _merged(same, found)
    named = [(paths.pattern_of(cluster.files), cluster) for cluster in clusters.values()]
    kept = []
    for path, cluster in named:
        if mixed := [other for other, own in named if own is not cluster and _matches(path, own.files)]:
            left_out.append(
                f"{path}: would also match files of {mixed[0]}; put the files of each table into a folder of their own"
            )
        elif not path.isprintable():
            left_out.append(f"{path}: has signs in its name that nobody sees; rename it")
        else:
            kept.append(_sample(path, cluster))
    return kept, left_out


def _looked_at(group: Sequence[str], read: Callable[[str], FileSample]) -> tuple[list[FileSample], list[str]]:
    """Samples of the first file, the last, and some between."""
    step = max(1, -(-len(group) // FILES))
    samples: list[FileSample] = []
    problems: list[str] = []
    for file in dict.fromkeys([*group[::step], group[-1]]):
        try:
            samples.append(read(file))
        except SourceError as error:
            problems += error.lines if isinstance(error, Unreadable) else [str(error)]
    forms = [sample.format for sample in samples]
    return [sample for sample in samples if sample.format == forms[0]], problems if not samples else []


def _merged(one: Cluster, other: Cluster) -> Cluster:
    return replace(one, files=(*one.files, *other.files), samples=(*one.samples, *other.samples))


def _matches(path: str, files: Sequence[str]) -> bool:
    pattern = FilePattern.parse(path)
    if not pattern.parts:
        return path in files
    top = f"{pattern.directory}/" if pattern.directory not in {"", "/"} else pattern.directory
    return any(file.startswith(top) and pattern.match(file.removeprefix(top)) is not None for file in files)


def _sample(path: str, cluster: Cluster) -> Sample:
    first = cluster.samples[0]
    source = {"format": first.format, "path": path}
    for sample in cluster.samples:
        source |= sample.written
    if out_of_order(lambda: (), [(None, file) for file in cluster.files]):
        source["file_order"] = "number"
    names = dict.fromkeys(name for sample in cluster.samples for name in sample.names)
    types = {name: dtype for sample in cluster.samples for name, dtype in sample.types.items()}
    records = [record for sample in cluster.samples for record in sample.records]
    return Sample(_name(path), source, records, list(names), types, any(map(paths.is_load, cluster.files)))


def _name(path: str) -> str:
    """What a table may be called; of what Kafka Connect or a topic is called, the part behind the last point."""
    file = path.rpartition("/")[2]
    topic = re.match(r"(?:[A-Za-z][\w-]*\.){2,}([A-Za-z_]\w*)(?=[+.])", file)
    return topic[1] if topic else paths.name_in(path)
