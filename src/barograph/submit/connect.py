"""Refuses sessions of Spark Connect: their driver is another process, which Barograph cannot reach from here."""

import os
from collections.abc import Mapping

from barograph.model import BadInput


def refuse_connect(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
    """settings: of a session that is not made yet."""
    chosen = [name for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED") if environment.get(name)]
    chosen += [name for name in ("spark.remote",) if settings.get(name)]
    mode = settings.get("spark.api.mode") or environment.get("SPARK_API_MODE", "")
    chosen += ["spark.api.mode=connect"] if mode.strip().lower() == "connect" else []
    if chosen:
        raise BadInput(
            f"Spark Connect is not supported ({chosen[0]} is set): Barograph needs a classic session, whose driver is "
            "this process; leave it out and name a master"
        )
