"""How a user names an operator: one call at the end of that part of the query. And how a query is called."""

from typing import TYPE_CHECKING

from barograph.model.checks import require_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def topology_name(query: str | None, query_id: str) -> str:
    """The planner's name of a query: a query without a name is known by its id."""
    return query or f"query-{query_id[:8]}"


def named(frame: "DataFrame", name: str) -> "DataFrame":
    """Call the operator that yields ``frame`` by this name in plans, tables and histories.

    It is an ordinary ``observe`` with a name of a certain form, so the query also runs on Spark alone. With the
    plug-in, the planner reads the name and removes the node, so it costs nothing.
    """
    from pyspark.sql.functions import count, lit

    require_name("operator name", name)
    return frame.observe(f"barograph:{name}", count(lit(1)))
