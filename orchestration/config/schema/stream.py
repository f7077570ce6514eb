"""Models streams in the file."""

from lakejoin.orchestration.config.schema.model import Input
from lakejoin.transforms.model.specs import TableSpec


class Stream(Input):
    """Events that happen once, such as departures or clicks."""

    event_time: str
    """Column of type `timestamp` that says when the event happened."""

    @property
    def is_ordered(self) -> bool:
        """Records of a stream are events of their own."""
        return True

    @property
    def spec(self) -> TableSpec:
        """The stream as the stages take it."""
        return TableSpec(
            name=self._name,
            columns=self.declared_columns,
            key=self.key,
            sequence=self.declared_sequence,
            event_time=self.event_time,
            max_future=self.max_future,
            written=self.names_in_source,
            append_only=True,
        )
