package org.apache.spark.barograph

/**
 * What one instance does in one epoch. Its own thread writes, plain fields and without a fence, because some of them are
 * written for every row; the reporter reads, and may see a count a moment late. When the life has ended it sees all.
 *
 * A clock is read only where a wait begins and ends, never for a row: see [[MeteredShuffleManager]] and [[CuttableReader]].
 */
final class Meter {
  /** Rows taken from other instances. */
  var executed: Long = 0L
  /** Rows given to the sink. */
  var out: Long = 0L
  /** Rows given to each instance of the next operator. */
  var sent: Array[Long] = Meter.Nobody
  /** What this source instance reads, where the source can say which rows are due; null elsewhere. */
  var load: ReplayPartition = _
  /** The sink's latencies, where the rows that reach it carry their times; null elsewhere. */
  var due: Histogram = _
  var read: Histogram = _

  private var idleNs = 0L
  private var blockedNs = 0L
  // The wait under way: when it began, 0 for none.
  private var idleSinceNs = 0L
  private var blockedSinceNs = 0L

  def idleBegins(): Unit = idleSinceNs = System.nanoTime()
  def idleEnds(): Unit = { idleNs += System.nanoTime() - idleSinceNs; idleSinceNs = 0L }
  def blockedBegins(): Unit = blockedSinceNs = System.nanoTime()
  def blockedEnds(): Unit = { blockedNs += System.nanoTime() - blockedSinceNs; blockedSinceNs = 0L }
  def blockedSince(startNs: Long): Unit = blockedNs += System.nanoTime() - startNs

  /** Whether it waits for rows just now. */
  def idle: Boolean = idleSinceNs != 0L

  /** Waiting so far, the wait under way included. */
  def idleNsBy(nowNs: Long): Long = Meter.upTo(idleNs, idleSinceNs, nowNs)
  def blockedNsBy(nowNs: Long): Long = Meter.upTo(blockedNs, blockedSinceNs, nowNs)
}

object Meter {
  private val Nobody = Array.emptyLongArray

  private def upTo(doneNs: Long, sinceNs: Long, nowNs: Long): Long =
    if (sinceNs == 0L) doneNs else doneNs + Math.max(0L, nowNs - sinceNs)
}

/**
 * A meter as an executor tells of it: everything since the epoch began, so that a report that is lost, or comes twice,
 * changes nothing. due, read: as [[Histogram.totals]] gives them, empty where there is no news of them.
 * dueRows, position: of a source that knows, rows due and first row not read, both counted from the load's start at loadMs;
 * -1 elsewhere.
 */
final case class MeterReport(
    executed: Long, emitted: Long, cpuNs: Long, busyNs: Long, idleNs: Long, blockedNs: Long,
    sent: Array[Long], due: Array[Long], read: Array[Long], loadMs: Long, start: Long, position: Long, dueRows: Long)
