package org.apache.spark.barograph.testing

import java.util.concurrent.{Executors, TimeUnit}

import org.apache.spark.SparkEnv
import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.orders.{ExecutorSeats, Ledger}
import org.apache.spark.barograph.planner.{EdgeSketch, OperatorSketch, TopologySketch}
import org.apache.spark.barograph.plugin.ExecutorHands
import org.apache.spark.barograph.telemetry.{Histogram, LifeReport, MeterReport, ProcessUse}

/**
 * For benches: a topology of many instances that one executor only reports, as if several executors ran them, so that
 * the cost of looking at hundreds of instances can be measured on a small machine. It belongs to a query run that is
 * really there. `register` is called in the driver, `play` on an executor with Spark SQL's reflect().
 */
object CrowdedTopology {
  private val Name = "crowd"
  private val TurnMs = 200L
  private val RowsS = 100L // of each source
  private lazy val clock = Executors.newScheduledThreadPool(2, (task: Runnable) => {
    val thread = new Thread(task, "barograph-crowded-topology")
    thread.setDaemon(true)
    thread
  })
  private var playing = false

  private def sketch(sources: Int, middles: Int, sinks: Int): TopologySketch = TopologySketch(
    Seq(
      OperatorSketch("source", sources, source = true, sink = false, stateful = false, "", repartition = false),
      OperatorSketch("middle", middles, source = false, sink = false, stateful = false, "", repartition = false),
      OperatorSketch("sink", sinks, source = false, sink = true, stateful = true, "", repartition = false)),
    Seq(EdgeSketch("source", "middle", "shuffle"), EdgeSketch("middle", "sink", "fields")))

  /** Seat all its instances on one executor. */
  def register(run: String, executor: String, host: String, sources: Int, middles: Int, sinks: Int): Unit = {
    Ledger.begin(Name, run, 0L)
    Ledger.seat(
      Name, run, 0L, sketch(sources, middles, sinks),
      Seq(ExecutorSeats(executor, host, sources + middles + sinks, 0L, cores = 1)))
  }

  /** Report as so many executors, if this is the executor named. Returns this executor. */
  def play(executor: String, run: String, players: Int, sources: Int, middles: Int, sinks: Int): String = synchronized {
    val here = SparkEnv.get.executorId
    if (here == executor && !playing) {
      playing = true
      val all = sketch(sources, middles, sinks).instances
      val plugin = ExecutorHands.plugin
      val startMs = System.currentTimeMillis()
      for (player <- 0 until players) {
        val mine = all.zipWithIndex.collect { case (instance, i) if i % players == player => instance }
        var turn = 0L
        clock.scheduleAtFixedRate(() => {
          turn += 1
          val lives = mine.map { case (operator, index) =>
            life(executor, run, operator, index, startMs, turn, sources, middles, sinks)
          }
          val process = ProcessUse(turn * 1000000L, 1L << 28)
          plugin.ask(Messages.report(Report(s"crowd-$player", Long.MaxValue, lives, process)))
        }, player * 10L, TurnMs, TimeUnit.MILLISECONDS)
      }
    }
    here
  }

  private def life(
      executor: String, run: String, operator: String, index: Int, startMs: Long, turn: Long, sources: Int,
      middles: Int, sinks: Int): LifeReport = {
    val nowMs = System.currentTimeMillis()
    val all = sources * RowsS * turn * TurnMs / 1000
    val rows = operator match {
      case "source" => all / sources
      case "middle" => all / middles
      case _ => all / sinks
    }
    def evenly(receivers: Int): Array[Long] =
      Array.tabulate(receivers)(j => (rows + (j * 7 + index) % receivers) / receivers)
    val sent = operator match {
      case "source" => evenly(middles)
      case "middle" => evenly(sinks)
      case _ => Array.emptyLongArray
    }
    val isSink = operator == "sink"
    val latency = if (isSink && (turn + index) % 5 == 0) times(rows, index) else Array.emptyLongArray
    val output = if (isSink) {
      val centiseconds = (nowMs - TurnMs) / 10 until nowMs / 10
      centiseconds.flatMap(c => Seq(c, 1L)).toArray
    } else Array.emptyLongArray
    val isSource = operator == "source"
    val outputBefore = turn * (TurnMs / 10)
    LifeReport(
      Name, run, 0L, operator, index, executor, 1, 1000 + index, startMs, 0L, if (isSource) rows else 0L, outputBefore,
      output,
      MeterReport(rows, rows, rows * 50000L, rows * 60000L, turn * 80000000L, 0L, sent, latency, latency,
        if (isSource) startMs else -1L, if (isSource) 0L else -1L, if (isSource) rows else -1L,
        if (isSource) rows + 3L else -1L))
  }

  /** As [[Histogram.totals]] gives them: sixty buckets that fill evenly. */
  private def times(rows: Long, index: Int): Array[Long] = {
    val buckets = (0 until 60).map(b => Histogram.bucket(5L + 3L * b + index % 3)).distinct.sorted
    Array(rows * 90L, 184L) ++ buckets.flatMap(b => Seq(b.toLong, 1L + rows / 60))
  }
}
