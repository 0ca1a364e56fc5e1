package org.apache.spark.barograph.telemetry

import org.apache.spark.barograph.orders.{Epoch, Stamps}
import org.apache.spark.barograph.planner.TopologySketch

/** The totals of one topology: its instances in the order of its sketch, its output and its latencies. */
final class TopologyTotals(val id: Long, val name: String) {
  var sketch: TopologySketch = TopologySketch(Nil, Nil)
  /** Of the last change of the sketch or of the instances. */
  var layoutStamp: Long = 0L
  var instances: Array[InstanceTotals] = Array.empty
  var present: Epoch = _
  /** When the present epoch was planned, on the monotonic clock. */
  var plannedNs: Long = 0L
  val output = new OutputRing
  val due = new LatencyTotals
  val read = new LatencyTotals
  val record = new LatencyTotals
  /** When its last query run ended, on the monotonic clock; 0 while it runs. */
  var endedNs: Long = 0L
  private[telemetry] val dueCounts = new DueCounts
  private var byKey = Map.empty[(String, Int), InstanceTotals]

  /** An epoch was planned. Instances that it still has keep their totals. */
  def epochBegins(epoch: Epoch, newId: () => Long, nowNs: Long): Unit = {
    endedNs = 0L
    plannedNs = nowNs
    val repeats = present != null && present.runId != epoch.runId && present.epoch == epoch.epoch
    present = epoch
    if (epoch.sketch != sketch) {
      val kept = byKey
      sketch = epoch.sketch
      instances = sketch.instances.map { case key @ (operator, index) =>
        kept.getOrElse(key, new InstanceTotals(newId(), operator, index))
      }.toArray
      byKey = instances.map(i => (i.operator, i.index) -> i).toMap
      layoutStamp = Stamps.next()
    }
    val seats = epoch.seated.map(s => (s.operator, s.index) -> s.executor).toMap
    val receivers = sketch.edges.map(e => e.source -> sketch.parallelism(e.target)).toMap
    instances.foreach(i =>
      i.epochBegins(seats.getOrElse((i.operator, i.index), ""), receivers.getOrElse(i.operator, 0), repeats))
    dueCounts.epochBegins()
    due.epochBegins()
    read.epochBegins()
    record.epochBegins()
  }

  def isPresent(runId: String, epoch: Long): Boolean =
    present != null && present.epoch == epoch && present.runId == runId

  /** How many of the rows read in the epoch before the present one are read again; None of any other epoch. */
  def readAgain(runId: String, epoch: Long, rowsRead: Long): Option[Long] =
    if (present == null) None
    else if (epoch == present.epoch - 1) Some(0L)
    else if (epoch == present.epoch && runId != present.runId) Some(rowsRead)
    else None

  /** Null if it has no such instance now. */
  def instance(operator: String, index: Int): InstanceTotals = byKey.getOrElse((operator, index), null)

  /**
   * Rows sent to each instance and not executed yet; of a source, rows due and not read. An epoch ends when all rows
   * that were sent are executed, so only the present one can have rows in flight.
   */
  def pending(nowNs: Long): Array[Long] = {
    val starts = sketch.operators.scanLeft(0)(_ + _.parallelism)
    val span = sketch.operators.zip(starts).map { case (o, start) => o.name -> (start, start + o.parallelism) }.toMap
    val found = new Array[Long](instances.length)
    val fed = new Array[Boolean](instances.length)
    for (edge <- sketch.edges; (from, to) <- span.get(edge.source); (start, end) <- span.get(edge.target)) {
      java.util.Arrays.fill(fed, start, end, true)
      for (s <- from until to) {
        val sent = instances(s).meter.sent
        var j = Math.min(sent.length, end - start) - 1
        while (j >= 0) { found(start + j) += sent(j); j -= 1 }
      }
    }
    for (i <- found.indices) {
      val instance = instances(i)
      found(i) = if (fed(i)) Math.max(0L, found(i) - instance.meter.executed) else instance.backlog.rowsBy(nowNs)
    }
    found
  }
}
