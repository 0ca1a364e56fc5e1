package org.apache.spark.barograph.shuffle

/**
 * Whether a sender's receivers are behind: they are when it waited for credit for at least half of a period, so that
 * occasional short waits do not count. Has no clock. Used by one thread.
 */
final class Pressure {
  private var behind = false
  private var periodStartNs, waitedNs = 0L

  /** A new period begins now; what was waited before does not count. */
  def restart(nowNs: Long): Unit = { periodStartNs = nowNs; waitedNs = 0L }

  def waited(ns: Long): Unit = waitedNs += ns

  /** Judged only when a period is over, which begins the next; until then the last answer holds. */
  def behindBy(nowNs: Long): Boolean = {
    val spentNs = nowNs - periodStartNs
    if (spentNs >= Pressure.PeriodNs) {
      behind = waitedNs * 2 >= spentNs
      restart(nowNs)
    }
    behind
  }
}

object Pressure {
  val PeriodNs = 100000000L
}
