package org.apache.spark.barograph.orders

import scala.concurrent.duration._

/** Which executors do not reach each other, as they report, and which of them get no instances for that reason. */
object Avoided {
  private val Fresh = 5.seconds
  private var reports = Map.empty[String, (Deadline, Seq[String])]
  private var avoided = Set.empty[String]

  def reset(): Unit = synchronized {
    reports = Map.empty
    avoided = Set.empty
  }

  def reported(executor: String, unreachable: Seq[String]): Unit = synchronized {
    if (unreachable.nonEmpty) reports += executor -> (Deadline.now, unreachable) else reports -= executor
  }

  /** Executor -> those that it does not reach; only what was reported a moment ago. */
  def unreachable: Map[String, Seq[String]] = synchronized {
    reports = reports.filter { case (_, (at, _)) => at + Fresh > Deadline.now }
    reports.map { case (executor, (_, others)) => executor -> others }
  }

  /** Exactly these get no instances from the next epoch on. */
  def set(executors: Set[String]): Unit = synchronized { avoided = executors }

  /** The executors without those that are avoided; all of them if the others have too few seats. */
  def spare(live: Seq[ExecutorSeats], taken: Iterable[Seated], seats: Int): Seq[ExecutorSeats] = {
    val now = synchronized(avoided)
    val others = live.filterNot(e => now(e.id))
    if (others.size < live.size && Seating.free(others, taken).values.filter(_ > 0).sum >= seats) others else live
  }
}
