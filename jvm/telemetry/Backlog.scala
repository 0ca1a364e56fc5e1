package org.apache.spark.barograph.telemetry

/**
 * Rows that are due to one instance of a source and not read, as last known. They stay known while an epoch ends and
 * the next begins, and while a query is down, but not for long: the backlog grows unseen then.
 */
final class Backlog {
  private var rows, olderMs, atNs = 0L
  private var known, ofPresentEpoch = false

  /** again: rows that were read and will be read once more, because their epoch failed. */
  def epochBegins(again: Long): Unit = {
    rows += again
    ofPresentEpoch = false
  }

  /** olderMs: how much older than usual that figure is already. */
  def seen(rows: Long, olderMs: Long, nowNs: Long): Unit = {
    put(rows, olderMs, nowNs)
    ofPresentEpoch = true
  }

  /** By a late report of the epoch before: it counts until one of the present epoch comes. */
  def seenBefore(rows: Long, olderMs: Long, nowNs: Long): Unit = if (!ofPresentEpoch) put(rows, olderMs, nowNs)

  private def put(rows: Long, olderMs: Long, nowNs: Long): Unit = {
    this.rows = rows
    this.olderMs = olderMs
    atNs = nowNs
    known = true
  }

  /** Its reader does not know it. One that has known it in this epoch has waited long enough for an answer. */
  def unseen(nowNs: Long): Unit = if (!isKept(nowNs)) known = false

  def isKnown(nowNs: Long): Boolean = known && nowNs - atNs < DueRows.ForgottenMs * 1000000L

  /** Whether it is known from an earlier epoch only. */
  def isKept(nowNs: Long): Boolean = isKnown(nowNs) && !ofPresentEpoch

  def rowsBy(nowNs: Long): Long = if (isKnown(nowNs)) rows else 0L

  /** How old the instance's figures are. executorMs: since the last report of the executor that runs it. */
  def ageMs(nowNs: Long, executorMs: Long): Long =
    if (!isKnown(nowNs)) executorMs
    else olderMs + Math.max(executorMs, (nowNs - atNs) / 1000000L - DueRows.UsualMs)
}
