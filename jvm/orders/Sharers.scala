package org.apache.spark.barograph.orders

/** How many executors share the quota of a control group, by executor. Guarded by the ledger's lock. */
final class Sharers {
  private var found = Map.empty[String, Int]

  def now: Map[String, Int] = found

  /** These are the executors now. Returns whether that changes anything. */
  def changes(executors: Iterable[ExecutorSeats]): Boolean = {
    val before = found
    found = Sharers.among(executors)
    found != before
  }
}

/** Executors share a quota if they are of one host and report the same group. Pure. */
object Sharers {
  /** By executor, how many share its quota, itself included; those that have one to themselves are left out. */
  def among(executors: Iterable[ExecutorSeats]): Map[String, Int] = {
    val limited = executors.filter(_.capacity.groupMilliCores > 0L)
    val groups = limited.groupBy(e => (e.host, e.capacity.groupName)).values
    groups.filter(_.size > 1).flatMap(group => group.map(_.id -> group.size)).toMap
  }
}
