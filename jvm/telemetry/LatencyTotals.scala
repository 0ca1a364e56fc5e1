package org.apache.spark.barograph.telemetry

/**
 * Latencies of all rows that have left a topology, in the buckets of [[Histogram]]. Each bucket knows when it last
 * changed, so that a reader gets only those that are new to it.
 */
final class LatencyTotals {
  val rows: Array[Long] = new Array[Long](Histogram.Buckets)
  private val stamps = new Array[Long](Histogram.Buckets)
  var sumMs: Long = 0L
  /** The maximum of the present epoch, and of all. */
  var epochMaxMs: Long = 0L
  var maxMs: Long = 0L
  /** Of the last change; 0 before the first. */
  var stamp: Long = 0L

  def epochBegins(): Unit = epochMaxMs = 0L

  /** One instance reported `now` after `before`, both as [[Histogram.totals]] gives them: buckets rise. */
  def add(before: Array[Long], now: Array[Long], at: Long): Unit = if (now.length > 2) {
    sumMs += Math.max(0L, now(0) - (if (before.isEmpty) 0L else before(0)))
    epochMaxMs = Math.max(epochMaxMs, now(1))
    maxMs = Math.max(maxMs, now(1))
    stamp = at
    var i, j = 2
    while (i < now.length) {
      while (j < before.length && before(j) < now(i)) j += 2
      val had = if (j < before.length && before(j) == now(i)) before(j + 1) else 0L
      if (now(i + 1) > had) {
        rows(now(i).toInt) += now(i + 1) - had
        stamps(now(i).toInt) = at
      }
      i += 2
    }
  }

  /** Buckets that changed after the cursor. */
  def after(cursor: Long)(take: Int => Unit): Unit = if (stamp > cursor) {
    var bucket = 0
    while (bucket < stamps.length) {
      if (stamps(bucket) > cursor) take(bucket)
      bucket += 1
    }
  }
}
