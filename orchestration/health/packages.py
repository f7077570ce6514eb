"""Compares the packages that are installed with those that were tested together."""

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from lakejoin.orchestration.health.finding import Finding

_NAMED = ("pyspark", "delta-spark", "deltalake", "dagster", "great-expectations", "pyarrow", "pandas")
"""What is looked at: a run depends on their versions."""


def tested() -> list[Requirement]:
    """Return the ranges that this package says; none from a source tree that is not installed."""
    try:
        said = requires("lakejoin") or []
    except PackageNotFoundError:
        return []
    return [needed for needed in map(Requirement, said) if needed.name in _NAMED and needed.marker is None]


def versions(needed: Sequence[Requirement], installed: Callable[[str], str] = version) -> Finding:
    """Compare what is installed with ranges. `installed`: the version of a package, as `version` has it."""
    if not needed:
        return Finding(
            "packages", "warning", "Lakejoin is not installed, so nothing says which versions were tested"
        )
    found, wrong = [], []
    for requirement in needed:
        try:
            number = installed(requirement.name)
        except PackageNotFoundError:
            wrong.append(f"{requirement.name} is missing, expected {requirement.specifier}")
            continue
        found.append(f"{requirement.name} {number}")
        if not requirement.specifier.contains(number, prereleases=True):
            wrong.append(f"{requirement.name} is {number}, expected {requirement.specifier}")
    if wrong:
        remedy = "Install Lakejoin anew, into an environment of its own"
        return Finding("packages", "wrong", f"{'; '.join(wrong)}. {remedy}")
    return Finding("packages", "ok", f"{', '.join(found)}, as tested")
