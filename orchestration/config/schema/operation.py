"""Models how flat rows say what happened to them: a preset, or a column and what its values mean."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, PRESETS, Preset, RowOp

Values = tuple[Annotated[str, Field(min_length=1)], ...]


class Operation(Frozen):
    """How flat rows say what happened to them."""

    preset: Preset | None = None
    """What a tool writes; the other keys go before it."""
    column: Annotated[str, Field(min_length=1)] | None = None
    """The column that says it; in `jsonl` also a path, such as `meta.type`."""
    upsert: Values | None = None
    """Values of rows that are new or changed, as text."""
    delete: Values | None = None
    """Values of deleted rows, as text."""
    default: Literal["upsert", "delete"] | None = None
    """What a row does in which the column is missing, null or empty; without it such a row is quarantined."""

    @model_validator(mode="after")
    def _says_something(self) -> "Operation":
        if self.preset is None and self.column is None:
            raise ValueError("needs `column` or `preset`")
        return self

    @property
    def row_op(self) -> RowOp:
        """What the parsers want to know of it."""
        known = DEFAULT_OP if self.preset is None else PRESETS[self.preset]
        own = {name: getattr(self, name) for name in ("column", "upsert", "delete", "default")}
        given = {name: value for name, value in own.items() if value is not None}
        if self.preset is None and given.keys() & {"upsert", "delete"}:
            # nobody says which of the values bring whole rows
            known = replace(known, upsert=(), delete=(), insert=())
        return replace(known, **given)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """A preset, or a mapping."""
        mapping = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [{"enum": [*PRESETS], "type": "string"}, mapping]}


def _mapping(value: Any) -> Any:
    """A preset that stands alone as the mapping that it is short for."""
    return {"preset": value} if isinstance(value, str) else value


DeclaredOperation = Annotated[Operation, BeforeValidator(_mapping)]
"""An operation as the file has it."""
