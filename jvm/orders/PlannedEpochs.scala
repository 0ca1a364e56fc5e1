package org.apache.spark.barograph.orders

import java.util.ArrayDeque

import scala.jdk.CollectionConverters._

import org.apache.spark.barograph.planner.TopologySketch

/** An epoch that was planned: by which orders, with which topology, and where its instances are. */
final case class Epoch(
    topology: String, runId: String, epoch: Long, orders: TopologyOrders, plannedMs: Long,
    sketch: TopologySketch, seated: Seq[Seated])

/** An epoch with the number of its planning. */
final case class Planned(stamp: Long, epoch: Epoch)

/** The epochs that were planned last, as far as they are kept for readers. Its owner's lock guards it. */
final class PlannedEpochs {
  // So many seats are kept in all, and at least so many epochs.
  private val SeatsKept = 50000L
  private val FewestKept = 20
  private val kept = new ArrayDeque[Planned]()
  private var seats = 0L

  def add(planned: Planned): Unit = {
    kept.addLast(planned)
    seats += planned.epoch.seated.size
    while (seats > SeatsKept && kept.size > FewestKept) seats -= kept.removeFirst().epoch.seated.size
  }

  /** Those with a higher stamp, oldest first. */
  def after(stamp: Long): Seq[Planned] = kept.descendingIterator().asScala.takeWhile(_.stamp > stamp).toSeq.reverse

  def clear(): Unit = {
    kept.clear()
    seats = 0L
  }
}
