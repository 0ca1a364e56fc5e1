package org.apache.spark.barograph.orders

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

/**
 * Whether a topology's sources read, and how long its epochs are, by the latest orders of this executor. Kept by
 * topology and not by run: both stay valid for the next query run.
 */
object Gates {
  final class Gate {
    @volatile var shut: Boolean = false
    /** Milliseconds; 0: as its trigger says. */
    @volatile var lengthMs: Long = 0L
  }

  private val gates = new ConcurrentHashMap[String, Gate]()

  def of(topology: String): Gate = gates.computeIfAbsent(topology, _ => new Gate)

  /** Orders are complete: a topology that they do not name reads, and has its trigger's epochs. */
  def take(orders: Orders): Unit = {
    (orders.resting ++ orders.lengths.keySet).foreach(of)
    gates.asScala.foreach { case (topology, gate) =>
      gate.lengthMs = orders.lengths.getOrElse(topology, 0L)
      gate.shut = orders.resting(topology)
    }
  }
}
