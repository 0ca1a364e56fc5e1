package org.apache.spark.barograph.telemetry

import scala.collection.mutable

import org.apache.spark.barograph.orders.Epoch

/** One executor's process: CPU time it has used since it started, and memory it holds. */
final case class ProcessUse(cpuNs: Long, residentBytes: Long)

/** What an instance did since the last call. pending is as of now. */
final class InstanceGauge(val topology: String, val operator: String, val index: Int) {
  var arrived, executed, emitted, pending, cpuNs, busyNs, idleNs, blockedNs = 0L
  var arrivedKnown = true
  var sent: Array[Long] = Array.emptyLongArray
  val latency: Map[String, LatencyGauge] = Map("due" -> new LatencyGauge, "read" -> new LatencyGauge)
}

final class LatencyGauge {
  var sumMs, maxMs = 0L
  val rows = mutable.Map[Int, Long]()

  def add(before: Array[Long], now: Array[Long]): Unit = if (now.nonEmpty) {
    val had = pairs(before)
    sumMs += now(0) - (if (before.isEmpty) 0L else before(0))
    maxMs = Math.max(maxMs, now(1))
    for ((bucket, n) <- pairs(now)) {
      val more = n - had.getOrElse(bucket, 0L)
      if (more > 0) rows(bucket) = rows.getOrElse(bucket, 0L) + more
    }
  }

  private def pairs(totals: Array[Long]): Map[Int, Long] =
    totals.drop(2).grouped(2).map(p => p(0).toInt -> p(1)).toMap
}

/**
 * The driver's sums of the meters. Executors report totals of each (run, epoch, instance) and differences are taken
 * here: a report that comes twice adds nothing, and a lost one is made up for by the next. What a failed epoch did
 * stays counted, under its own run. Bounded by the number of instances; an ended one is forgotten two epochs later.
 */
object Gauges {
  private type LifeKey = (String, Long, String, Int)
  private val told = mutable.LinkedHashMap[LifeKey, (LifeReport, Long)]()
  private val sums = mutable.LinkedHashMap[(String, String, Int), InstanceGauge]()
  private val due = mutable.Map[(String, String, Int), (Long, Long)]()
  private val processes = mutable.Map[String, (ProcessUse, Long)]()
  private val Kept = 200000
  private val ForgottenAfterMs = 60000L

  def reset(): Unit = synchronized { Seq(told, sums, due, processes).foreach(_.clear()) }

  def take(executor: String, reports: Seq[LifeReport], process: ProcessUse): Unit = synchronized {
    reports.foreach(take)
    val (before, notTaken) = processes.getOrElse(executor, (ProcessUse(0L, 0L), 0L))
    processes(executor) = (process, notTaken + Math.max(0L, process.cpuNs - before.cpuNs))
  }

  private def take(report: LifeReport): Unit = {
    val key = (report.runId, report.epoch, report.operator, report.index)
    val before = told.get(key).map(_._1)
    // The last report of a life is repeated if the driver was slow to answer; an older report must not follow it.
    if (!before.exists(_.endedMs > 0) && (before.isDefined || told.size < Kept)) {
      val now = report.meter
      val had = before.map(_.meter).getOrElse(Gauges.nothing)
      val sum = gauge(report.topology, report.operator, report.index)
      sum.executed += Math.max(0L, now.executed - had.executed)
      sum.emitted += Math.max(0L, now.emitted - had.emitted)
      sum.cpuNs += Math.max(0L, now.cpuNs - had.cpuNs)
      sum.busyNs += now.busyNs - had.busyNs
      sum.idleNs += now.idleNs - had.idleNs
      sum.blockedNs += now.blockedNs - had.blockedNs
      if (sum.sent.length < now.sent.length) sum.sent = sum.sent.padTo(now.sent.length, 0L)
      for (j <- now.sent.indices) sum.sent(j) += now.sent(j) - (if (j < had.sent.length) had.sent(j) else 0L)
      sum.latency("due").add(had.due, now.due)
      sum.latency("read").add(had.read, now.read)
      arrived(sum, now, had)
      // A report without latencies must not make the next one count all of them again.
      val kept = now.copy(
        due = if (now.due.nonEmpty) now.due else had.due, read = if (now.read.nonEmpty) now.read else had.read)
      told(key) = (report.copy(output = Array.emptyLongArray, meter = kept), System.currentTimeMillis())
    }
  }

  /** Rows arrive at a source when they are due, read or not; if the source does not know, when they are read. */
  private def arrived(sum: InstanceGauge, now: MeterReport, had: MeterReport): Unit =
    if (now.loadMs >= 0) {
      val key = (sum.topology, sum.operator, sum.index)
      // Due rows are counted from the load's start, over epochs and restarts, so none is counted again in a replay.
      val before = due.get(key).collect { case (load, rows) if load == now.loadMs => rows }.getOrElse(now.start)
      sum.arrived += Math.max(0L, now.dueRows - before)
      due(key) = (now.loadMs, Math.max(before, now.dueRows))
    } else {
      sum.arrivedKnown = false
      sum.arrived += Math.max(0L, now.executed - had.executed)
    }

  private def gauge(topology: String, operator: String, index: Int): InstanceGauge =
    sums.getOrElseUpdate((topology, operator, index), new InstanceGauge(topology, operator, index))

  /** Everything since the last call, with all instances of the present epochs. */
  def take(present: Seq[Epoch]): Seq[InstanceGauge] = synchronized {
    for (epoch <- present; (operator, index) <- epoch.sketch.instances) {
      val key = (epoch.runId, epoch.epoch, operator, index)
      val senders = epoch.sketch.edges.filter(_.target == operator).map(_.source)
      val sum = gauge(epoch.topology, operator, index)
      val mine = told.get(key).map(_._1.meter)
      sum.pending =
        if (senders.isEmpty) mine.filter(_.loadMs >= 0).map(m => m.dueRows - m.position).getOrElse(0L)
        else {
          // An epoch ends when all rows that were sent are executed, so only the present one can have rows in flight.
          val sent = senders.flatMap(s => (0 until epoch.sketch.parallelism(s)).flatMap(i =>
            told.get((epoch.runId, epoch.epoch, s, i)).map(t => t._1.meter.sent.lift(index).getOrElse(0L)))).sum
          Math.max(0L, sent - mine.map(_.executed).getOrElse(0L))
        }
    }
    val all = sums.values.toSeq
    sums.clear()
    forget(present)
    all
  }

  def takeProcesses(): Seq[(String, Long, Long)] = synchronized {
    val all = processes.toSeq.map { case (executor, (use, cpuNs)) => (executor, cpuNs, use.residentBytes) }
    processes.mapValuesInPlace { case (_, (use, _)) => (use, 0L) }
    all
  }

  def executorRemoved(executor: String): Unit = synchronized { processes -= executor }

  private def forget(present: Seq[Epoch]): Unit = {
    val epochs = present.map(e => e.runId -> e.epoch).toMap
    val old = System.currentTimeMillis() - ForgottenAfterMs
    told.filterInPlace { case ((run, epoch, _, _), (report, atMs)) =>
      epochs.get(run) match {
        case Some(now) => epoch >= now - 1 || (report.endedMs == 0 && atMs > old)
        case None => atMs > old
      }
    }
  }

  private val nothing = MeterReport(0L, 0L, 0L, 0L, 0L, 0L, Array.emptyLongArray, Array.emptyLongArray,
    Array.emptyLongArray, -1L, -1L, -1L, -1L)
}
