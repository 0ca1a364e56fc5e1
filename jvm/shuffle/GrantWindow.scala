package org.apache.spark.barograph.shuffle

/**
 * How many rows may be on their way to a receiver: as many as it executes in a time ahead, at its recent rate. Time in
 * which it was idle does not count. Older rows fade out over `targetNs`.
 *
 * Rows that were sent cannot be taken back if later ones turn out to be slow. So the time ahead is only as long as the
 * receiver needs to have rows at all times: it doubles, up to `targetNs`, when the receiver had none although a sender
 * had waited for credit, and otherwise shrinks. Has no clock. Used by one thread.
 */
final class GrantWindow(targetNs: Long) {
  private var rows, busyNs = 0.0
  private var rowsSince = 0L
  private var sinceNs, idleThenNs = 0L
  private val leastAheadNs = Math.max(1.0, targetNs.toDouble / GrantWindow.MostDrops)
  private var aheadNs = leastAheadNs

  /** False before the first row: the time to open state is not part of a row's cost. */
  def begun: Boolean = sinceNs != 0L

  /** The first row goes into the operator; its work is yet to be done. idleNs: idle time so far. */
  def begin(nowNs: Long, idleNs: Long): Unit = { sinceNs = nowNs; idleThenNs = idleNs }

  /** A later row goes into the operator. */
  def took(): Unit = rowsSince += 1

  /** The receiver had no row although a sender had waited for credit. At the start that is so whatever is granted. */
  def ranDry(): Unit = if (!starting) aheadNs = Math.min(targetNs.toDouble, aheadNs * 2)

  /** The rows that all senders together may have been granted and the receiver not have taken. */
  def rowsAt(nowNs: Long, idleNs: Long): Long = {
    val passedNs = nowNs - sinceNs
    val spentNs = Math.max(0L, passedNs - (idleNs - idleThenNs))
    val kept = Math.max(0.0, 1.0 - spentNs.toDouble / targetNs)
    rows = rows * kept + rowsSince
    busyNs = busyNs * kept + spentNs
    rowsSince = 0L
    sinceNs = nowNs
    idleThenNs = idleNs
    aheadNs = Math.max(leastAheadNs, aheadNs * Math.max(0.0, 1.0 - passedNs / (GrantWindow.Shrink * targetNs)))
    // A short moment is no basis for a rate. Rows that were taken within it were quick, so twice as many may follow.
    val ahead = if (starting) 2 * rows else rows / busyNs * aheadNs
    Math.min(GrantWindow.MostRows, Math.max(GrantWindow.FewestRows, ahead.toLong))
  }

  private def starting: Boolean = busyNs < GrantWindow.MomentNs
}

object GrantWindow {
  /** To follow the row that is being executed. */
  val FewestRows = 1L
  val MostRows: Long = 1L << 24
  val MomentNs = 1000000L
  /** The shortest time ahead is so many times shorter than the target. */
  val MostDrops = 16
  /** The time ahead shrinks by a factor e in so many targets. */
  val Shrink = 5.0
}
