package org.apache.spark.barograph.telemetry

/**
 * What one instance did, over all its epochs and query runs; nothing of it ever falls. id: of this instance only. An
 * instance that a rescale removes and a later one brings back is another one and begins at 0.
 */
final class InstanceTotals(val id: Long, val operator: String, val index: Int) {
  var arrived, executed, emitted, cpuNs, busyNs, idleNs, blockedNs, throttledNs = 0L
  /** Of a source that knows which rows are due; if it does not, rows that were read count as arrived. */
  val backlog = new Backlog
  /** Rows sent to each instance of the next operator. */
  var sent: Array[Long] = Array.emptyLongArray

  // Of the present epoch: the executor, and what was reported last.
  var executor = ""
  var meter: MeterReport = InstanceTotals.nothing
  var rowsRead = 0L
  private var due: DueCount = _

  /**
   * An epoch begins. receivers: instances of the operator it sends to; counts of those that are gone are dropped.
   * repeats: the epoch before it has failed and what it read is read again.
   */
  def epochBegins(seat: String, receivers: Int, repeats: Boolean): Unit = {
    backlog.epochBegins(if (repeats) rowsRead else 0L)
    executor = seat
    meter = InstanceTotals.nothing
    rowsRead = 0L
    if (sent.length != receivers) sent = java.util.Arrays.copyOf(sent, receivers)
  }

  /** A life of it went on from `had` to `now`, of the present epoch or of an earlier one. */
  def add(had: MeterReport, now: MeterReport, counts: DueCounts, present: Boolean, nowNs: Long): Unit = {
    executed += now.executed - had.executed
    emitted += now.emitted - had.emitted
    cpuNs += now.cpuNs - had.cpuNs
    busyNs += now.busyNs - had.busyNs
    idleNs += now.idleNs - had.idleNs
    blockedNs += now.blockedNs - had.blockedNs
    throttledNs += now.throttledNs - had.throttledNs
    var j = Math.min(sent.length, now.sent.length) - 1
    while (j >= 0) {
      sent(j) += now.sent(j) - (if (j < had.sent.length) had.sent(j) else 0L)
      j -= 1
    }
    // Rows arrive at a source when they are due, read or not; if the source does not know, when they are read.
    if (now.loadMs >= 0) {
      val count = counts.of(this, due, now.loadMs, now.start, present)
      if (present) due = count
      arrived += count.upTo(now.dueRows)
      if (present) backlog.seen(now.dueRows - now.position, now.dueAgeMs, nowNs)
    } else {
      if (present) backlog.unseen(nowNs)
      // As long as the figure of an earlier epoch is kept, an answer is awaited, and rows arrive when it comes.
      if (!backlog.isKept(nowNs)) {
        val read = now.executed - had.executed
        arrived += read
        // If the source comes to know again, what was counted here is not counted once more.
        if (due != null) due.rows += read
      }
    }
  }

  /** What the epoch before reports last, when the next one is planned already. again: its rows that are read again. */
  def late(report: MeterReport, again: Long, nowNs: Long): Unit =
    if (report.loadMs >= 0) backlog.seenBefore(report.dueRows - report.position + again, report.dueAgeMs, nowNs)
}

object InstanceTotals {
  val nothing: MeterReport = MeterReport(0L, 0L, 0L, 0L, 0L, 0L, Array.emptyLongArray, Array.emptyLongArray,
    Array.emptyLongArray, -1L, -1L, -1L, -1L)

  /**
   * A later report of the same life. Nothing falls: a report may come twice or late, and two reports may disagree on a
   * wait of some milliseconds. One without latencies must not make the next count all of them again.
   */
  def later(had: MeterReport, now: MeterReport): MeterReport = MeterReport(
    Math.max(had.executed, now.executed), Math.max(had.emitted, now.emitted), Math.max(had.cpuNs, now.cpuNs),
    Math.max(had.busyNs, now.busyNs), Math.max(had.idleNs, now.idleNs), Math.max(had.blockedNs, now.blockedNs),
    larger(had.sent, now.sent), if (now.due.nonEmpty) now.due else had.due,
    if (now.read.nonEmpty) now.read else had.read, now.loadMs, now.start,
    Math.max(had.position, now.position), Math.max(had.dueRows, now.dueRows),
    Math.max(had.throttledNs, now.throttledNs), now.heldMs, if (now.record.nonEmpty) now.record else had.record,
    now.dueAgeMs)

  private def larger(had: Array[Long], now: Array[Long]): Array[Long] = {
    val found = java.util.Arrays.copyOf(now, Math.max(had.length, now.length))
    for (j <- had.indices) found(j) = Math.max(found(j), had(j))
    found
  }
}
