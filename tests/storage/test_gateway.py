"""What PySpark asks the JVM for again and again."""

from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.spark


def test_building_an_expression_again_asks_the_jvm_only_to_call(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `functions` is, and that its member is a function, is known from the first time."""
    sent: list[str] = []
    send = GatewayClient.send_command

    def counted(client: Any, command: str, *rest: Any, **options: Any) -> Any:
        sent.append(command.partition("\n")[0])
        return send(client, command, *rest, **options)

    F.col("first")
    monkeypatch.setattr(GatewayClient, "send_command", counted)
    F.col("second")

    reflection = [command for command in sent if command in ("r", "j")]
    assert "c" in sent  # a call
    assert not reflection
