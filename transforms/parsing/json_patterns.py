r"""Makes regular expressions of JSON, by which a part of a line is found and cut out as it is written.

They are possessive, for Java keeps each step that it could go back to on its stack.
"""

STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
"""A string with its quotes; it holds no line end."""
DEEPEST = 12
"""Levels of objects and lists that are passed over in search of a member."""


def value(depth: int = DEEPEST) -> str:
    """A regular expression for a value."""
    scalar = rf'{STRING}|[^\s"{{}}\[\],:]++'
    return rf"{scalar}|[\[{{]{inside(depth)}[\]}}]" if depth else scalar


def inside(depth: int = DEEPEST) -> str:
    """A regular expression for what stands between the brackets of an object or list."""
    return rf'(?:[^"\[\]{{}}]++|{STRING}|(?=[\[{{])(?:{value(depth - 1)}))*+'


def whole_object(depth: int = DEEPEST) -> str:
    """A regular expression for an object with its brackets."""
    return rf"\{{{inside(depth)}\}}"


def members_but(pattern: str) -> str:
    """A regular expression for members of an object, each with the comma behind it, up to one that begins so."""
    return rf"\s*+(?:(?!{pattern}){STRING}\s*+:\s*+(?:{value()})\s*+,\s*+)*+"


def after_members(name: str) -> str:
    """A regular expression for an object up to an object in it, group 1, that is called so."""
    member = rf"{name}\s*+:\s*+"
    return rf"(?s)^\s*+\{{{members_but(member)}{member}({whole_object()})"
