package org.apache.spark.barograph.orders

import java.util.concurrent.ConcurrentHashMap

/**
 * What executors must know: for each query run, the last epoch that must end now (it only grows during a run);
 * the topologies whose sources rest; the length of epochs in milliseconds, if it is not the trigger's; the CPU of
 * instances, with the way by which it should be enforced; and for executors with a common quota, how many they are.
 */
final case class Orders(
    version: Long, cuts: Map[String, Long], resting: Set[String], lengths: Map[String, Long],
    shares: Map[InstanceKey, Share] = Map.empty, enforce: String = "auto", sharers: Map[String, Int] = Map.empty)

/** The orders of one topology: parallelism by operator, executor by instance. Kept on the driver only. */
final case class TopologyOrders(version: Long, parallelism: Map[String, Int], places: Map[(String, Int), String])

object TopologyOrders {
  val none: TopologyOrders = TopologyOrders(0L, Map.empty, Map.empty)
}

/** The cuts this executor knows of. */
object Cuts {
  /** One run: every epoch up to `epoch` is cut. */
  final class Line { @volatile var epoch: Long = -1L }

  private val lines = new ConcurrentHashMap[String, Line]()
  @volatile private var heard = -1L

  def of(runId: String): Line = lines.computeIfAbsent(runId, _ => new Line)

  def version: Long = heard

  def take(orders: Orders): Unit = synchronized {
    if (orders.version > heard) {
      orders.cuts.foreach { case (run, epoch) =>
        val line = of(run)
        if (epoch > line.epoch) line.epoch = epoch
      }
      Gates.take(orders)
      Shares.take(orders)
      heard = orders.version
      // A run that no order names has ended: its entry would only use memory.
      lines.keySet().removeIf(run => lines.get(run).epoch >= 0 && !orders.cuts.contains(run))
      Shares.tell()
    }
  }
}
