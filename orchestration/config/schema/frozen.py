"""Says how every mapping of the file is read."""

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo


class Frozen(BaseModel):
    """Values are taken as they stand: nothing is converted, nothing unknown is passed over."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    @classmethod
    def fields_by_key(cls) -> dict[str, FieldInfo]:
        """The fields by the names that the file has for them."""
        return {field.alias or name: field for name, field in cls.model_fields.items()}

    @classmethod
    def said_of(cls, key: str) -> str:
        """What a key means, in few words."""
        text = " ".join((cls.fields_by_key()[key].description or "").split())
        return text.split(". ")[0].split("; see")[0].rstrip(".")
