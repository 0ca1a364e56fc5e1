package org.apache.spark.barograph.telemetry

import scala.collection.mutable

import org.apache.spark.barograph.orders.{Ledger, Stamps}

/** One executor's process: CPU time it has used since it started, and memory it holds. */
final case class ProcessUse(cpuNs: Long, residentBytes: Long)

/**
 * The driver's running totals of all that executors report, over epochs, restarts and query runs. Executors report
 * totals of each (run, epoch, instance), and the differences are added here: a report that comes twice adds nothing,
 * and a lost one is made up for by the next. What a failed epoch did stays counted.
 *
 * Reading changes nothing: see [[View]]. Memory is bounded by the instances of the topologies that run or ran within
 * the last ten minutes; an ended life is forgotten two epochs later.
 */
object Totals {
  private type LifeKey = (String, Long, String, Int)
  /** A life: what was reported last. instance is null if its topology no longer has it. */
  private final class Told(val topology: TopologyTotals, val instance: InstanceTotals, var report: LifeReport) {
    var atNs = 0L
    var outputTaken = 0L // (centisecond, count) pairs
  }

  private val told = mutable.LinkedHashMap[LifeKey, Told]()
  private val topologies = mutable.LinkedHashMap[String, TopologyTotals]()
  private val processes = mutable.Map[String, ProcessUse]()
  private val heardNs = mutable.Map[String, Long]() // executor -> its last report
  private val log = new LifeLog
  private var lastId = 0L
  private var planned = 0L // the ledger's epochs are known up to here
  private var sweptNs = 0L
  private val LivesKept = 200000
  private val MinuteNs = 60L * 1000000000L
  private val ForgottenAfterNs = 10L * MinuteNs
  private val SweepNs = 1000000000L

  def reset(): Unit = synchronized {
    Seq(told, topologies, processes, heardNs).foreach(_.clear())
    log.clear()
    planned = 0L
  }

  def take(executor: String, reports: Seq[LifeReport], process: ProcessUse): Unit =
    take(executor, reports, process, System.nanoTime())

  private[barograph] def take(executor: String, reports: Seq[LifeReport], process: ProcessUse, nowNs: Long): Unit =
    synchronized {
      follow(nowNs)
      heardNs(executor) = nowNs
      val had = processes.getOrElse(executor, ProcessUse(0L, 0L))
      processes(executor) = process.copy(cpuNs = Math.max(had.cpuNs, process.cpuNs))
      reports.foreach(take(_, nowNs))
      if (nowNs - sweptNs >= SweepNs) {
        sweptNs = nowNs
        sweep(nowNs)
      }
    }

  private def take(report: LifeReport, nowNs: Long): Unit = {
    val key = (report.runId, report.epoch, report.operator, report.index)
    val before = told.get(key)
    // The last report of a life is repeated if the driver was slow to answer; an older report must not follow it.
    if (!before.exists(_.report.endedMs > 0) && (before.isDefined || told.size < LivesKept)) {
      val life = before.getOrElse {
        val topology = topologyOf(report.topology)
        new Told(topology, topology.instance(report.operator, report.index), null)
      }
      val topology = life.topology
      val had = if (life.report == null) InstanceTotals.nothing else life.report.meter
      val now = InstanceTotals.later(had, report.meter)
      val stamp = Stamps.next()
      topology.due.add(had.due, now.due, stamp)
      topology.read.add(had.read, now.read, stamp)
      topology.record.add(had.record, now.record, stamp)
      var i = 2 * Math.max(0L, life.outputTaken - report.outputBefore).toInt
      while (i + 1 < report.output.length) {
        topology.output.add(report.output(i), report.output(i + 1), stamp)
        i += 2
      }
      life.outputTaken = Math.max(life.outputTaken, report.outputBefore + report.output.length / 2)
      val isPresent = topology.isPresent(report.runId, report.epoch)
      val rowsRead = Math.max(report.rowsRead, if (life.report == null) 0L else life.report.rowsRead)
      if (life.instance != null) {
        life.instance.add(had, now, topology.dueCounts, isPresent, nowNs)
        if (isPresent) {
          life.instance.executor = report.executor
          life.instance.meter = now
          life.instance.rowsRead = rowsRead
        } else topology.readAgain(report.runId, report.epoch, rowsRead).foreach(life.instance.late(now, _, nowNs))
      }
      val begins = life.report == null
      life.report = report.copy(output = Array.emptyLongArray, meter = now, rowsRead = rowsRead)
      life.atNs = nowNs
      if (begins) told(key) = life
      // What a present life reads is among its instance's totals.
      if (begins || report.endedMs > 0 || !isPresent) log.add(stamp, life.report)
    }
  }

  /** Take in what the ledger has planned, and which runs it has forgotten. */
  private def follow(nowNs: Long): Unit = if (Ledger.changedAt > planned) {
    val until = Stamps.now
    for (p <- Ledger.plannedAfter(planned)) {
      val topology = topologyOf(p.epoch.topology)
      topology.epochBegins(p.epoch, () => { lastId += 1; lastId }, nowNs)
      // The executor of a life that did not end has died with it, or its last report is still to come.
      for (life <- told.values if life.topology == topology && life.report.endedMs == 0 &&
          !topology.isPresent(life.report.runId, life.report.epoch)) log.add(Stamps.next(), life.report)
    }
    planned = until
    val runs = Ledger.epochsNow.map(_.topology).toSet
    topologies.values.foreach(t => t.endedNs = if (runs(t.name)) 0L else if (t.endedNs == 0L) nowNs else t.endedNs)
  }

  private def topologyOf(name: String): TopologyTotals =
    topologies.getOrElseUpdate(name, { lastId += 1; new TopologyTotals(lastId, name) })

  private def sweep(nowNs: Long): Unit = {
    told.filterInPlace { (_, life) =>
      val (topology, report) = (life.topology, life.report)
      val recent = nowNs - life.atNs < MinuteNs
      if (topology.present != null && topology.present.runId == report.runId && topology.endedNs == 0L)
        report.epoch >= topology.present.epoch - 1 || (report.endedMs == 0 && recent)
      else recent
    }
    topologies.filterInPlace((_, t) => t.endedNs == 0L || nowNs - t.endedNs < ForgottenAfterNs)
    heardNs.filterInPlace((executor, atNs) => processes.contains(executor) || nowNs - atNs < ForgottenAfterNs)
  }

  /** A new master may give it the number of one that has ended, whose silence is not its own. */
  def executorAdded(executor: String): Unit = synchronized { heardNs -= executor }

  def executorRemoved(executor: String): Unit = synchronized { processes -= executor }

  /** For [[View]], which reads all of it at one moment. Ages are from nowNs. */
  private[telemetry] def read[T](nowNs: Long)(
      take: (Seq[TopologyTotals], LifeLog, String => ProcessUse, String => Option[Long], Long) => T): T = synchronized {
    follow(nowNs)
    take(
      topologies.values.toSeq, log, processes.getOrElse(_, ProcessUse(0L, 0L)),
      executor => heardNs.get(executor).map(atNs => Math.max(0L, nowNs - atNs) / 1000000L), planned)
  }

  /** Milliseconds since the last report of each of these executors that has reported. */
  def ages(executors: Seq[String]): Map[String, Long] =
    read(System.nanoTime()) { (_, _, _, age, _) => executors.flatMap(id => age(id).map(id -> _)).toMap }

  /** For tests: how many lives, topologies and changes of lives are kept. */
  private[barograph] def kept: (Int, Int, Int) = synchronized { (told.size, topologies.size, log.size) }
}
