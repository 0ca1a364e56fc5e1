package org.apache.spark.barograph

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

/**
 * Whether a topology's sources read, and how long its epochs are, as this executor has heard. By topology and not by run:
 * both hold for the query's next life as well.
 */
object Gates {
  final class Gate {
    @volatile var shut: Boolean = false
    /** Milliseconds; 0: as long as its trigger says. */
    @volatile var lengthMs: Long = 0L
  }

  private val gates = new ConcurrentHashMap[String, Gate]()

  def of(topology: String): Gate = gates.computeIfAbsent(topology, _ => new Gate)

  /** The orders name everybody, so who is not named reads, and has its trigger's epochs. */
  def take(orders: Orders): Unit = {
    (orders.resting ++ orders.lengths.keySet).foreach(of)
    gates.asScala.foreach { case (topology, gate) =>
      gate.lengthMs = orders.lengths.getOrElse(topology, 0L)
      gate.shut = orders.resting(topology)
    }
  }
}
