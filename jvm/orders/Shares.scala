package org.apache.spark.barograph.orders

/** An instance, over all its epochs and query runs. */
final case class InstanceKey(topology: String, operator: String, index: Int)

/**
 * CPU of an instance, in thousandths of a per cent of a core: the most that it may use, and what is reserved for it (0:
 * nothing is said of that).
 */
final case class Share(limitMilliPct: Long, reservedMilliPct: Long) {
  /** The most that it may use, in cores. */
  def limitCores: Double = limitMilliPct / 100000.0
}

/** The shares that this executor holds its instances to, by the latest orders, and by which means it should do so. */
object Shares {
  @volatile private var ordered = Map.empty[InstanceKey, Share]
  @volatile private var wished = "auto"
  @volatile private var together = Map.empty[String, Int]
  @volatile private var follow: () => Unit = () => ()

  /** Null if the instance is not limited. */
  def of(instance: InstanceKey): Share = ordered.getOrElse(instance, null)

  def wish: String = wished

  /** How many executors share the quota of this one's control group, itself included. */
  def sharers(executor: String): Int = together.getOrElse(executor, 1)

  /** Call this after each order, also after one that cuts; only the last such call counts. */
  def onOrder(call: () => Unit): Unit = follow = call

  private[orders] def tell(): Unit = follow()

  /** Orders are complete: an instance that they do not name has no limit. */
  def take(orders: Orders): Unit = {
    ordered = orders.shares
    wished = orders.enforce
    together = orders.sharers
  }
}
