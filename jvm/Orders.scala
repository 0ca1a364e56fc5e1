package org.apache.spark.barograph

import java.util.concurrent.ConcurrentHashMap

/**
 * What executors must know: per run of a query, the last epoch that is to end now (grows only while runs live); by
 * topology, whose sources are to rest, and how many milliseconds an epoch is to be where that is not its trigger's.
 */
final case class Orders(version: Long, cuts: Map[String, Long], resting: Set[String], lengths: Map[String, Long])

/** What one topology is to be: parallelism by operator, executor by instance. Kept on the driver only. */
final case class TopologyOrders(version: Long, parallelism: Map[String, Int], places: Map[(String, Int), String])

object TopologyOrders {
  val none: TopologyOrders = TopologyOrders(0L, Map.empty, Map.empty)
}

/** The cuts this executor has heard of. */
object Cuts {
  /** One run's line: every epoch up to `epoch` is cut. */
  final class Line { @volatile var epoch: Long = -1L }

  private val lines = new ConcurrentHashMap[String, Line]()
  @volatile private var heard = -1L
  @volatile private var delayMs = 0L

  def of(runId: String): Line = lines.computeIfAbsent(runId, _ => new Line)

  def version: Long = heard

  /**
   * Pretend that orders travel slowly to one executor: for tests, which call it there with Spark SQL's reflect().
   * Returns the executor it was called on.
   */
  def delayOn(executor: String, ms: Long): String = {
    val here = org.apache.spark.SparkEnv.get.executorId
    if (here == executor) delayMs = ms
    here
  }

  def take(orders: Orders): Unit = {
    if (delayMs > 0) Thread.sleep(delayMs)
    synchronized {
      if (orders.version > heard) {
        orders.cuts.foreach { case (run, epoch) =>
          val line = of(run)
          if (epoch > line.epoch) line.epoch = epoch
        }
        Gates.take(orders)
        heard = orders.version
        // A run that no order names has ended: its line would only use memory.
        lines.keySet().removeIf(run => lines.get(run).epoch >= 0 && !orders.cuts.contains(run))
      }
    }
  }
}
