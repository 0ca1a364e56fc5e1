package org.apache.spark.barograph.orders

import scala.collection.mutable
import scala.concurrent.duration._

import org.apache.spark.SparkContext
import org.apache.spark.barograph.enforce.{Capacity, Enforced, Way}
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.planner.TopologySketch

/** An executor as the driver knows it. seats: the tasks Spark runs there at once. capacity, enforced: as it says. */
final case class ExecutorSeats(
    id: String, host: String, seats: Int, sinceMs: Long, cores: Int,
    capacity: Capacity = Capacity.unknown, enforced: Enforced = Enforced("", ""))

/**
 * The driver's state, by topology: its orders, its present epoch, and the executors. There is one lock, so that an
 * epoch runs wholly by one plan and a cut always names the epoch that ran by the previous plan.
 */
object Ledger {
  private val orders = mutable.Map[String, TopologyOrders]()
  private val pinned = mutable.Map[String, (String, Long, TopologyOrders)]()
  private val epochs = mutable.Map[String, Epoch]()
  private val planned = new PlannedEpochs
  private var live = (Seq.empty[ExecutorSeats], 0L)
  // Of the last change of `epochs`.
  @volatile private var changed = 0L
  private val executors = mutable.Map[String, ExecutorSeats]()
  private val cuts = mutable.Map[String, Long]()
  private val cutRuns = mutable.Map[String, String]() // topology -> the run whose epoch was cut last
  private val holds = mutable.Map[String, Long]() // run -> how long (ms) its next epoch waits
  private val held = mutable.Set[String]() // runs that wait there now
  private val resting = mutable.Set[String]()
  private val lengths = mutable.Map[String, Long]()
  private var shares = Map.empty[InstanceKey, Share]
  private var enforce = Way.Auto
  private val sharers = new Sharers
  private var ordersVersion = 0L
  private val firstUsed = mutable.Map[String, Deadline]() // executor -> when an instance was first seated there
  private val Cold = 5.seconds

  /** A new application in the same process: forget everything of an earlier one. */
  def reset(): Unit = synchronized {
    Seq(orders, pinned, epochs, executors, firstUsed, cuts, cutRuns, holds, lengths).foreach(_.clear())
    held.clear()
    resting.clear()
    shares = Map.empty
    enforce = Way.Auto
    sharers.changes(Nil)
    planned.clear()
    live = (Seq.empty, 0L)
    changed = Stamps.next()
    ordersVersion += 1
  }

  // --- executors ---

  /** An executor with fewer cores than a task takes gets no task, so it is none of ours. */
  def executorAdded(executor: ExecutorSeats): Unit =
    if (executor.seats > 0) synchronized { executors(executor.id) = executor }

  def executorRemoved(id: String): Unit = synchronized {
    executors -= id
    firstUsed -= id
    if (sharers.changes(executors.values)) ordersVersion += 1
  }

  /** What an executor says of the CPU that it may use, and of how it holds instances to their limits. */
  def executorSays(id: String, capacity: Capacity, enforced: Enforced): Unit = synchronized {
    executors.get(id).foreach { e =>
      executors(id) = e.copy(capacity = capacity, enforced = enforced)
      if (e.capacity != capacity && sharers.changes(executors.values)) ordersVersion += 1
    }
  }

  def liveExecutors(context: SparkContext): Seq[ExecutorSeats] = {
    val live = SparkInternals.liveExecutors(context)
    synchronized { executors.values.filter(e => live(e.id)).toSeq.sortBy(e => (e.id.length, e.id)) }
  }

  /** The live executors, and the stamp of their last change. */
  def executorsNow(context: SparkContext): (Seq[ExecutorSeats], Long) = {
    val now = liveExecutors(context)
    synchronized {
      if (now != live._1) live = (now, Stamps.next())
      live
    }
  }

  /** Seats that no epoch of any query occupies. An epoch occupies its seats as soon as it is planned. */
  def freeSeats(context: SparkContext): Int = freeSeats(liveExecutors(context))

  private[barograph] def freeSeats(live: Seq[ExecutorSeats]): Int =
    synchronized(Seating.free(live, epochs.values.flatMap(_.seated)).values.sum)

  // --- orders ---

  /** Whether this run has begun an earlier epoch. */
  def hasBegunBefore(topology: String, runId: String, epoch: Long): Boolean = synchronized {
    pinned.get(topology).exists { case (run, before, _) => run == runId && before < epoch }
  }

  /** The planner begins an epoch: from here on the orders of this epoch do not change. */
  def begin(topology: String, runId: String, epoch: Long): TopologyOrders = synchronized {
    pinned.get(topology) match {
      case Some((`runId`, `epoch`, pin)) => pin
      case _ =>
        awaitRelease(runId)
        val pin = orders.getOrElse(topology, TopologyOrders.none)
        pinned(topology) = (runId, epoch, pin)
        pin
    }
  }

  /**
   * Waits between two epochs if the run is to be held. A run that is stopped during this wait repeats no row; else it
   * goes on when it is released or the time is over.
   */
  private def awaitRelease(runId: String): Unit = holds.remove(runId).foreach { ms =>
    val end = ms.millis.fromNow
    held += runId
    notifyAll()
    try while (held(runId) && end.hasTimeLeft()) waitUntil(end) finally held -= runId
  }

  /** A topology that was to be held, or is held, goes on. */
  def release(topology: String): Unit = synchronized { cutRuns.get(topology).foreach(releaseRun) }

  private def releaseRun(run: String): Unit = {
    holds -= run
    held -= run
    notifyAll()
  }

  /**
   * Gives every instance a seat, as [[Seating]] says. Seats that other queries use in their present epoch are not free.
   * An instance without a seat gets no preference, and Spark's own admission check reports what is missing.
   */
  def seat(topology: String, runId: String, epoch: Long, sketch: TopologySketch, context: SparkContext)
      : Map[String, Seq[String]] = seat(topology, runId, epoch, sketch, liveExecutors(context))

  private[barograph] def seat(
      topology: String, runId: String, epoch: Long, sketch: TopologySketch, live: Seq[ExecutorSeats])
      : Map[String, Seq[String]] = synchronized {
    val (_, _, pin) = pinned(topology)
    val (seated, free) = seats(topology, sketch, live, pin)
    val now = Deadline.now
    // A new run may have been started because an executor died, and its seats may still be counted here.
    Warm.standBack(if (epochs.get(topology).exists(_.runId == runId)) free else 0)
    val begun = Epoch(topology, runId, epoch, pin, System.currentTimeMillis(), sketch, seated)
    epochs(topology) = begun
    seated.map(_.executor).filter(_.nonEmpty).foreach(firstUsed.getOrElseUpdate(_, now))
    changed = Stamps.next()
    planned.add(Planned(changed, begun))
    notifyAll()
    val host = live.map(e => e.id -> e.host).toMap
    seated.groupBy(_.operator).map { case (operator, of) =>
      operator -> of.sortBy(_.index).map(s => host.get(s.executor).map(h => s"${h}_${s.executor}").getOrElse(""))
    }
  }

  /** Where its instances would sit now, and how many seats they would leave. */
  private def seats(topology: String, sketch: TopologySketch, live: Seq[ExecutorSeats], by: TopologyOrders)
      : (Seq[Seated], Int) = {
    val had = epochs.get(topology).toSeq.flatMap(_.seated).map(s => (s.operator, s.index) -> s.executor).toMap
    val taken = epochs.values.filter(_.topology != topology).flatMap(_.seated)
    val free = Seating.free(Avoided.spare(live, taken, sketch.instances.size), taken)
    val now = Deadline.now
    val warm = live.map(_.id).filter(firstUsed.get(_).exists(now - _ >= Cold)).toSet
    val seated = Seating.seat(sketch.instances, by.places, had, free, warm)
    (seated, free.values.sum)
  }

  /** The seats of a topology's next epoch, as far as they differ from those of the present one. */
  def foresee(topology: String, live: Seq[ExecutorSeats]): Seq[Seated] = synchronized {
    epochs.get(topology).toSeq.flatMap { present =>
      val had = present.seated.map(s => (s.operator, s.index) -> s.executor).toMap
      val (next, _) = seats(topology, present.sketch, live, orders.getOrElse(topology, TopologyOrders.none))
      next.filter(s => s.executor.nonEmpty && !had.get((s.operator, s.index)).contains(s.executor))
    }
  }

  /**
   * New orders for topologies, and cuts, in one step. Returns, for each topology that is cut, the epoch that will end.
   * A cut names its epoch, so repeating it in that epoch changes nothing. holdMs: how long the next epoch of a cut
   * topology waits.
   */
  def order(
      changes: Map[String, (Map[String, Int], Map[(String, Int), String])],
      cut: Set[String],
      holdMs: Map[String, Long] = Map.empty): Map[String, Long] = synchronized {
    for ((topology, (parallelism, places)) <- changes) {
      val before = orders.getOrElse(topology, TopologyOrders.none)
      orders(topology) = TopologyOrders(before.version + 1, parallelism, places)
    }
    val ending = cut.flatMap(q => pinned.get(q).map { case (run, epoch, _) => (q, run, epoch) })
    ending.foreach { case (topology, run, epoch) =>
      cuts(run) = math.max(epoch, cuts.getOrElse(run, -1L))
      cutRuns(topology) = run
      holdMs.get(topology).foreach(holds(run) = _)
    }
    if (ending.nonEmpty) ordersVersion += 1
    ending.map { case (q, _, epoch) => q -> epoch }.toMap
  }

  /** What executors must know now. */
  def current: Orders = synchronized {
    Orders(ordersVersion, cuts.toMap, resting.toSet, lengths.toMap, shares, enforce, sharers.now)
  }

  /** Exactly these instances are limited from now on. */
  def share(wanted: Map[InstanceKey, Share]): Unit = synchronized {
    if (shares != wanted) ordersVersion += 1
    shares = wanted
  }

  /** By which way executors hold instances to their limits. Throws if there is no such way. */
  def enforceBy(way: String): Unit = synchronized {
    Way.wrong(way).foreach(why => throw new IllegalArgumentException(why))
    if (enforce != way) ordersVersion += 1
    enforce = way
  }

  /** Exactly the sources of these topologies rest from now on. */
  def rest(topologies: Set[String]): Unit = synchronized {
    if (resting.toSet != topologies) {
      resting.clear()
      resting ++= topologies
      ordersVersion += 1
    }
  }

  /** Epochs of these topologies last so many milliseconds, also the present ones; others last as their triggers say. */
  def pace(lengthsMs: Map[String, Long]): Unit = synchronized {
    if (lengths.toMap != lengthsMs) {
      lengths.clear()
      lengths ++= lengthsMs
      ordersVersion += 1
    }
  }

  // --- what was planned ---

  def epochsNow: Seq[Epoch] = synchronized { epochs.values.toSeq }

  /** The stamp of the last epoch that was planned, or of the last run that was forgotten. */
  def changedAt: Long = changed

  /** Epochs that were planned after a stamp, oldest first, as far as they are kept. */
  def plannedAfter(stamp: Long): Seq[Planned] = synchronized { planned.after(stamp) }

  /**
   * Wait until an epoch later than `epoch` is planned. Returns its number, or -1 on timeout. A run that dies while it
   * is cut never ends its epoch: the first epoch of the next run, which may have the same number, ends the wait too.
   */
  def awaitEpochAfter(topology: String, epoch: Long, timeoutMs: Long): Long = synchronized {
    val end = timeoutMs.millis.fromNow
    val run = cutRuns.getOrElse(topology, "")
    def now: Option[Long] = epochs.get(topology).filter(e => e.epoch > epoch || e.runId != run).map(_.epoch)
    while (now.isEmpty && end.hasTimeLeft()) waitUntil(end)
    now.getOrElse(-1L)
  }

  /**
   * Wait until a topology that was cut and held has committed its epoch and begins no other; false if it died, or on
   * timeout. A hold does not outlive its waiter: if it has not come about by then, it never does.
   */
  def awaitHeld(topology: String, timeoutMs: Long): Boolean = synchronized {
    val end = timeoutMs.millis.fromNow
    val run = cutRuns.getOrElse(topology, "")
    def lives: Boolean = pinned.get(topology).exists(_._1 == run)
    while (!held(run) && lives && end.hasTimeLeft()) waitUntil(end, atMostMs = 100L)
    val found = held(run)
    if (!found) releaseRun(run)
    found
  }

  /** Deadlines are on the monotonic clock: a correction of the wall clock must not end or lengthen a wait. */
  private def waitUntil(end: Deadline, atMostMs: Long = Long.MaxValue): Unit =
    wait(math.max(1L, math.min(atMostMs, end.timeLeft.toMillis)))

  /** Forget the seats and cuts of all other runs, which have ended. Orders stay for the next query run. */
  def keepOnly(runs: Set[String]): Unit = keep(runs)

  /** Forget the seats and cuts of a run that has ended. */
  def forget(run: String): Unit = keep(_ != run)

  private def keep(lives: String => Boolean): Unit = synchronized {
    val (seated, ordered) = (epochs.size, cuts.size)
    epochs.filterInPlace((_, e) => lives(e.runId))
    pinned.filterInPlace((_, p) => lives(p._1))
    cuts.filterInPlace((run, _) => lives(run))
    holds.filterInPlace((run, _) => lives(run))
    if (epochs.size != seated) changed = Stamps.next()
    if (cuts.size != ordered) ordersVersion += 1
    notifyAll()
  }
}
