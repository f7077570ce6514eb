"""What is repeated of the errors of systems and object stores."""

import pytest

from lakejoin.storage.errors import reason_of

S3 = (
    "Kernel error -> Generic S3 error\n  \x1b[31m↳\x1b[0m 403 Forbidden\n  \x1b[31m↳\x1b[0m <?xml version='1.0'?>\n"
    "<Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist</Message>"
    "<AWSAccessKeyId>an-access-key</AWSAccessKeyId></Error>\n"
)
NO_ROLE = (
    "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing PUT http://169.254.169.254/latest/api/token\n"
)
REFUSED = "Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing GET\n  \x1b[31m↳\x1b[0m Connection refused\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Permission denied\nat line 3", "Permission denied"),
        ("", "OSError"),
        (S3, "InvalidAccessKeyId: The key does not exist"),
        (REFUSED, "Generic S3 error: Connection refused"),
        (
            NO_ROLE,
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role",
        ),
    ],
    ids=["of the system", "without text", "of S3", "of the network", "of the machine's role"],
)
def test_reason_is_one_line_that_helps(text: str, reason: str) -> None:
    """Neither a stack of causes nor more of S3's answer than its code and message."""
    assert reason_of(OSError(text)) == reason
