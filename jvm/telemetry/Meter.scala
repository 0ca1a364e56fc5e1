package org.apache.spark.barograph.telemetry

/**
 * What one instance does in one epoch. Its own thread writes; others read. What is written for every row is a
 * [[Counter]], which needs no memory barrier. A wait for rows begins and ends with a volatile write: a thread that sees
 * the wait also sees every row that was counted before it, and [[DrainCheck]] relies on that.
 *
 * A clock is read only where a wait begins and ends, never for a row: see [[MeteredShuffleManager]] and
 * [[CuttableReader]].
 */
final class Meter {
  /** Rows taken from other instances. */
  val executed = new Counter
  /** Rows given to the sink. */
  val out = new Counter
  /** Rows given to each instance of the next operator. */
  @volatile var sent: Counters = Meter.NoReceivers
  /** What this source instance reads, if the source knows which rows are due; else null. */
  @volatile var load: DueRows = _
  /** The sink's latencies, if rows that reach it have their times; else null. */
  @volatile var due: Histogram = _
  @volatile var read: Histogram = _
  /** The sink's latencies by record times. */
  @volatile var record: Histogram = _
  /** The record time of the row that is being processed; 0: unknown. Only the instance's own thread uses it. */
  var recordMs = 0L

  @volatile private var idleNs = 0L
  @volatile private var blockedNs = 0L
  // The present wait: when it began, 0 for none.
  @volatile private var idleSinceNs = 0L
  @volatile private var blockedSinceNs = 0L

  def idleBegins(): Unit = idleSinceNs = System.nanoTime()
  def idleEnds(): Unit = { idleNs += System.nanoTime() - idleSinceNs; idleSinceNs = 0L }
  def blockedBegins(): Unit = blockedSinceNs = System.nanoTime()
  def blockedEnds(): Unit = { blockedNs += System.nanoTime() - blockedSinceNs; blockedSinceNs = 0L }
  def blockedSince(startNs: Long): Unit = blockedNs += System.nanoTime() - startNs

  /** Whether it waits for rows now. */
  def idle: Boolean = idleSinceNs != 0L

  /** Time waited so far, including the present wait. */
  def idleNsBy(nowNs: Long): Long = Meter.upTo(idleNs, idleSinceNs, nowNs)
  def blockedNsBy(nowNs: Long): Long = Meter.upTo(blockedNs, blockedSinceNs, nowNs)
}

object Meter {
  private val NoReceivers = new Counters(0)

  private def upTo(doneNs: Long, sinceNs: Long, nowNs: Long): Long =
    if (sinceNs == 0L) doneNs else doneNs + Math.max(0L, nowNs - sinceNs)
}

/**
 * A meter as an executor reports it: totals since the epoch began, so that a report that is lost or repeated changes
 * nothing. due, read, record: as [[Histogram.totals]] gives them, empty if they are not reported this time. dueRows, position:
 * of a source that knows, rows due and first row not read, both counted from the load's start at loadMs; else -1.
 * throttledNs: for how long its limit held it back. heldMs: since when it goes by its present limit; 0 if it does not.
 */
final case class MeterReport(
    executed: Long, emitted: Long, cpuNs: Long, busyNs: Long, idleNs: Long, blockedNs: Long,
    sent: Array[Long], due: Array[Long], read: Array[Long], loadMs: Long, start: Long, position: Long, dueRows: Long,
    throttledNs: Long = 0L, heldMs: Long = 0L, record: Array[Long] = Array.emptyLongArray)
