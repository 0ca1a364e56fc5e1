package org.apache.spark.barograph

import scala.collection.mutable

import org.apache.spark.SparkContext

/** An executor as the driver knows it. */
final case class ExecutorSeats(id: String, host: String, seats: Int, sinceMs: Long)

/** Where one instance of an epoch was sent, and, where that is not what the orders say, why. */
final case class Seated(operator: String, index: Int, executor: String, wanted: String, because: String)

/** An epoch that was planned: on which orders, with which topology, and who sits where. */
final case class Epoch(
    topology: String, runId: String, epoch: Long, orders: TopologyOrders, plannedMs: Long,
    sketch: TopologySketch, seated: Seq[Seated])

/**
 * The driver's book, by name of topology: the orders of each, the epoch each runs, the executors there are. One lock, so that an
 * epoch runs wholly on one plan and a cut always names the epoch that ran on the plan before.
 */
object Ledger {
  private val orders = mutable.Map[String, TopologyOrders]()
  private val pinned = mutable.Map[String, (String, Long, TopologyOrders)]()
  private val epochs = mutable.Map[String, Epoch]()
  private val planned = mutable.Queue[Epoch]()
  private val executors = mutable.Map[String, ExecutorSeats]()
  private val cuts = mutable.Map[String, Long]()
  private val cutRuns = mutable.Map[String, String]() // topology -> the run that was last told to end its epoch
  private val holds = mutable.Map[String, Long]() // run -> how long (ms) its next epoch is not begun
  private val held = mutable.Set[String]() // runs that wait there now
  private val resting = mutable.Set[String]()
  private val lengths = mutable.Map[String, Long]()
  private var ordersVersion = 0L
  // A bound for an application nobody observes.
  private val PlannedKept = 10000
  private val firstUsedMs = mutable.Map[String, Long]() // executor -> when an instance was first seated there
  private val ColdMs = 5000L

  /** A new application in the same process: nothing of an earlier one holds. */
  def reset(): Unit = synchronized {
    Seq(orders, pinned, epochs, executors, firstUsedMs, cuts, cutRuns, holds, lengths).foreach(_.clear())
    resting.clear()
    planned.clear()
    ordersVersion += 1
  }

  // --- executors ---

  def executorAdded(executor: ExecutorSeats): Unit = synchronized { executors(executor.id) = executor }
  def executorRemoved(id: String): Unit = synchronized {
    executors -= id
    firstUsedMs -= id
  }
  def liveExecutors(context: SparkContext): Seq[ExecutorSeats] = {
    val live = SparkInternals.liveExecutors(context)
    synchronized { executors.values.filter(e => live(e.id)).toSeq.sortBy(e => (e.id.length, e.id)) }
  }

  /** Seats that no epoch has, of all queries; also of one that is planned and does not run yet. */
  def freeSeats(context: SparkContext): Int = {
    val live = liveExecutors(context)
    synchronized(freeOf(live, epochs.values).values.sum)
  }

  /** By executor, the seats that these epochs leave. */
  private def freeOf(live: Seq[ExecutorSeats], taken: Iterable[Epoch]): mutable.LinkedHashMap[String, Int] = {
    val free = mutable.LinkedHashMap(live.map(e => e.id -> e.seats): _*)
    for (epoch <- taken; s <- epoch.seated; left <- free.get(s.executor)) free(s.executor) = left - 1
    free
  }

  // --- what a query is to be ---

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

  /** Between two epochs of a run that is held: to be stopped there repeats nothing. It goes on when its time is over. */
  private def awaitRelease(runId: String): Unit = holds.remove(runId).foreach { ms =>
    val end = System.currentTimeMillis() + ms
    held += runId
    notifyAll()
    try while (System.currentTimeMillis() < end) wait(math.max(1L, end - System.currentTimeMillis()))
    finally held -= runId
  }

  /**
   * Gives every instance a seat: the one its orders name if it is there and free; else the one it had; else the
   * executor with most room, rather one where instances have run before: on a new one code is loaded first, and the
   * whole topology waits for it. Seats that other queries use in their present epoch are not free. An instance for which
   * no seat is left gets no preference, and Spark's own admission says what is missing.
   */
  def seat(topology: String, runId: String, epoch: Long, sketch: TopologySketch, context: SparkContext)
      : Map[String, Seq[String]] = {
    val live = liveExecutors(context)
    synchronized {
      val (_, _, pin) = pinned(topology)
      val had = epochs.get(topology).toSeq.flatMap(_.seated).map(s => (s.operator, s.index) -> s.executor).toMap
      val free = freeOf(live, epochs.values.filter(_.topology != topology))
      val nowMs = System.currentTimeMillis()
      val warm = live.map(_.id).filter(firstUsedMs.get(_).exists(nowMs - _ >= ColdMs)).toSet
      def roomiest(among: String => Boolean): Option[String] =
        free.filter { case (id, left) => left > 0 && among(id) }.maxByOption(_._2).map(_._1)
      val wishes = sketch.instances.map(i => i -> pin.places.getOrElse(i, ""))
      val granted = wishes.map { case (i, wish) =>
        val ok = free.get(wish).exists(_ > 0)
        if (ok) free(wish) -= 1
        val because =
          if (ok) "" else if (wish.isEmpty) "the plan does not name it"
          else if (!free.contains(wish)) s"executor $wish is gone" else s"executor $wish has no free seat"
        (i, wish, if (ok) wish else "", because)
      }
      val seated = granted.map { case ((operator, index), wish, given, because) =>
        val executor =
          if (given.nonEmpty) given
          else had.get((operator, index)).filter(e => free.get(e).exists(_ > 0))
            .orElse(roomiest(warm)).orElse(roomiest(_ => true)).getOrElse("")
        if (given.isEmpty && executor.nonEmpty) free(executor) -= 1
        Seated(operator, index, executor, wish, because)
      }
      // A run that begins may do so because an executor is dying, whose seats are still counted here.
      Warm.standBack(if (epochs.get(topology).exists(_.runId == runId)) free.values.sum else 0)
      val begun = Epoch(topology, runId, epoch, pin, System.currentTimeMillis(), sketch, seated)
      epochs(topology) = begun
      seated.map(_.executor).filter(_.nonEmpty).foreach(firstUsedMs.getOrElseUpdate(_, nowMs))
      planned.enqueue(begun)
      while (planned.size > PlannedKept) planned.dequeue()
      notifyAll()
      val host = live.map(e => e.id -> e.host).toMap
      seated.groupBy(_.operator).map { case (operator, of) =>
        operator -> of.sortBy(_.index).map(s => host.get(s.executor).map(h => s"${h}_${s.executor}").getOrElse(""))
      }
    }
  }

  /**
   * New orders for topologies, and cuts, all at once. Returns, per topology that is to be cut, the epoch that will end.
   * Epochs are named, so saying it twice changes nothing. holdMs: of those that are cut, how long the next epoch waits to begin.
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
  def current: Orders = synchronized { Orders(ordersVersion, cuts.toMap, resting.toSet, lengths.toMap) }

  /** From now on the sources of these topologies rest, and nobody else's. */
  def rest(topologies: Set[String]): Unit = synchronized {
    if (resting.toSet != topologies) {
      resting.clear()
      resting ++= topologies
      ordersVersion += 1
    }
  }

  /** From now on epochs of these topologies last so many milliseconds, the present ones too; the others' as their triggers say. */
  def pace(lengthsMs: Map[String, Long]): Unit = synchronized {
    if (lengths.toMap != lengthsMs) {
      lengths.clear()
      lengths ++= lengthsMs
      ordersVersion += 1
    }
  }

  // --- what was planned ---

  def epochsNow: Seq[Epoch] = synchronized { epochs.values.toSeq }

  /** Epochs planned since the last call. */
  def takePlanned(): Seq[Epoch] = synchronized { planned.dequeueAll(_ => true).toSeq }

  /**
   * Wait until an epoch later than `epoch` is planned; its number, or -1 when the time is over. A run that dies while it
   * is cut never ends its epoch: its successor's first epoch, which may have the same number, ends the waiting too.
   */
  def awaitEpochAfter(topology: String, epoch: Long, timeoutMs: Long): Long = synchronized {
    val end = System.currentTimeMillis() + timeoutMs
    val run = cutRuns.getOrElse(topology, "")
    def now: Option[Long] = epochs.get(topology).filter(e => e.epoch > epoch || e.runId != run).map(_.epoch)
    while (now.isEmpty && System.currentTimeMillis() < end) wait(math.max(1L, end - System.currentTimeMillis()))
    now.getOrElse(-1L)
  }

  /** Wait until a topology that was cut and held has committed its epoch and begins no other; false: it died, or time is over. */
  def awaitHeld(topology: String, timeoutMs: Long): Boolean = synchronized {
    val end = System.currentTimeMillis() + timeoutMs
    val run = cutRuns.getOrElse(topology, "")
    def lives: Boolean = pinned.get(topology).exists(_._1 == run)
    while (!held(run) && lives && System.currentTimeMillis() < end) wait(math.max(1L, math.min(100L, end - System.currentTimeMillis())))
    held(run)
  }

  /** Runs that have ended give their seats back, and their cuts are history. Orders stay for the query's next life. */
  def keepOnly(runs: Set[String]): Unit = synchronized {
    epochs.filterInPlace((_, e) => runs(e.runId))
    pinned.filterInPlace((_, p) => runs(p._1))
    val before = cuts.size
    cuts.filterInPlace((run, _) => runs(run))
    holds.filterInPlace((run, _) => runs(run))
    if (cuts.size != before) ordersVersion += 1
    notifyAll()
  }
}
