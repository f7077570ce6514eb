"""What a system or an object store says is wrong, in one line that a person can use."""

import re

_MARKS = re.compile(r"\x1b\[\d+m|↳")
"""How delta-rs sets off each cause from the next."""
_S3 = re.compile(r"<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", re.DOTALL)
_MACHINE_ROLE = "169.254.169.254"
"""Where an SDK asks last: the machine's own role, on Amazon's machines."""


def reason_of(error: Exception) -> str:
    """Return the reason of an error without its stack of causes; of S3's answers no more than code and message."""
    text = str(error)
    if answer := _S3.search(text):
        return f"{answer[1]}: {answer[2]}"
    if _MACHINE_ROLE in text:
        return "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role"
    causes = [line for line in (_MARKS.sub("", line).strip() for line in text.splitlines()) if line]
    chained = "↳" in text
    return f"{causes[0]}: {causes[-1]}" if chained else (causes or [type(error).__name__])[0]
