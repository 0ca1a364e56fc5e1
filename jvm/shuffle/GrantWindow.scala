package org.apache.spark.barograph.shuffle

/**
 * How many rows a receiver executes in `targetNs` at its recent rate. Time in which it was idle does not count. Older
 * rows fade out over one window. Has no clock. Used by one thread.
 */
final class GrantWindow(targetNs: Long) {
  private var rows, busyNs = 0.0
  private var rowsSince = 0L
  private var sinceNs, idleThenNs = 0L

  /** False before the first row: the time to open state is not part of a row's cost. */
  def begun: Boolean = sinceNs != 0L

  /** The first row goes into the operator; its work is yet to be done. idleNs: idle time so far. */
  def begin(nowNs: Long, idleNs: Long): Unit = { sinceNs = nowNs; idleThenNs = idleNs }

  /** A later row goes into the operator. */
  def took(): Unit = rowsSince += 1

  /** The rows to grant to one of the senders, which all get the same part. */
  def rowsFor(senders: Int, nowNs: Long, idleNs: Long): Long = {
    val spentNs = Math.max(0L, (nowNs - sinceNs) - (idleNs - idleThenNs))
    val kept = Math.max(0.0, 1.0 - spentNs.toDouble / targetNs)
    rows = rows * kept + rowsSince
    busyNs = busyNs * kept + spentNs
    rowsSince = 0L
    sinceNs = nowNs
    idleThenNs = idleNs
    // A short moment is no basis for a rate: a grant cannot be taken back.
    if (busyNs < Credit.MomentNs) Credit.FirstRows
    else Math.min(Credit.MostRows, Math.max(Credit.FewestRows, (rows / busyNs * targetNs / senders).toLong))
  }
}
