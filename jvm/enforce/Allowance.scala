package org.apache.spark.barograph.enforce

import java.util.concurrent.locks.LockSupport

import org.apache.spark.TaskContext

/**
 * How much CPU one instance may still use in one epoch. Its own thread asks before each row; other threads set the
 * limit. The CPU clock is a system call, so it is read after so many rows as take about a millisecond, and at the next
 * row when another thread says so: rows that become slow must not keep it from looking.
 *
 * While an epoch begins and ends there is no limit: the work then, such as opening and writing state, keeps the whole
 * topology waiting. isCut: whether the epoch is to end. pool: of all instances of the executor that have limits.
 * beginningNs: how long the beginning is, from its first row.
 */
final class Allowance(
    isCut: () => Boolean, clock: CpuClock = CpuClock, pool: Pool = Pool.here,
    val beginningNs: Long = Allowance.BeginningNs) {
  @volatile private var cores = Allowance.Free
  @volatile private var pooled = false
  @volatile private var reservedCores = 0.0
  @volatile private var look = false
  @volatile private var ending = false
  @volatile private var begunNs = 0L
  @volatile private var throttledNs = 0L
  @volatile private var throttledSinceNs = 0L
  @volatile private var stoppedNs = 0L
  @volatile private var heldMs = 0L
  @volatile private var resting: Thread = null

  // Only its own thread uses these.
  private val bucket = new Bucket
  private val reserved = new Bucket(0.0) // the least limit is no guarantee: many of it may be more than there is
  private var countedNs = -1L // its CPU time up to which it is counted in the pool; -1: it is not
  private var rows, rowsLeft = 1
  private var rested = false
  private var lookedNs = clock.nowNs()
  private var heldCores = Allowance.Free

  // --- for its own thread ---

  /** For how long (ns) it must wait before the next row; 0: it may go on. After a wait it asks again. */
  def waitNs(): Long = {
    rowsLeft -= 1
    if (rowsLeft > 0 && !look) 0L else lookNow()
  }

  /** Waits for this time or a shorter one, and then asks again at the next row. */
  def rest(ns: Long): Unit = {
    throttledSinceNs = clock.nowNs()
    resting = Thread.currentThread()
    LockSupport.parkNanos(Math.min(ns, Allowance.SliceNs))
    resting = null
    lookedNs = clock.nowNs()
    throttledNs += lookedNs - throttledSinceNs
    throttledSinceNs = 0L
    rowsLeft = rows
    rested = true
    look = true
  }

  /** Waits until it may go on. The task can be killed meanwhile. */
  def await(task: TaskContext): Unit = {
    var ns = waitNs()
    while (ns > 0L) {
      rest(ns)
      if (task != null) task.killTaskIfInterrupted()
      // A thread that is interrupted would not wait at all, and its next wait of another kind ends it.
      ns = if (Thread.currentThread().isInterrupted) 0L else waitNs()
    }
  }

  /** Its input ends: what is left to do is done without a limit. */
  def ends(): Unit = ending = true

  private def lookNow(): Long = {
    val nowNs = clock.nowNs()
    adapt(nowNs)
    look = false
    if (begunNs == 0L) begunNs = nowNs
    val limit = cores
    val isPooled = pooled && pool.isBounded
    if ((limit == Allowance.Free && !isPooled) || isLifted(nowNs)) {
      bucket.forget()
      leavePool()
      if (heldCores != Allowance.Free) heldMs = 0L
      heldCores = Allowance.Free
      0L
    } else {
      if (limit != heldCores) {
        heldCores = limit
        heldMs = clock.wallMs()
      }
      val cpuNs = clock.cpuNs()
      val ownNs = limitWaitNs(nowNs, cpuNs, limit)
      if (isPooled) Math.max(ownNs, poolWaitNs(nowNs, cpuNs))
      else {
        leavePool()
        ownNs
      }
    }
  }

  /** What is used while there is no limit is not owed once there is one. */
  private def limitWaitNs(nowNs: Long, cpuNs: Long, limit: Double): Long =
    if (limit == Allowance.Free) {
      bucket.forget()
      0L
    } else bucket.waitNs(nowNs, cpuNs, limit)

  private def leavePool(): Unit = {
    reserved.forget()
    countedNs = -1L
  }

  /** Above its share it waits for the pool, but no longer than until it is within its share again. */
  private def poolWaitNs(nowNs: Long, cpuNs: Long): Long = {
    val ns = pool.waitNs(nowNs, if (countedNs < 0L) 0L else cpuNs - countedNs)
    countedNs = cpuNs
    val share = reservedCores
    if (share <= 0.0) {
      reserved.forget()
      ns
    } else {
      val aboveNs = reserved.waitNs(nowNs, cpuNs, share)
      // What it uses while all have enough takes nothing from the others.
      if (ns == 0L) reserved.forgive()
      Math.min(ns, aboveNs)
    }
  }

  /** As many rows as take the time between two looks at the present rate. A look right after a wait says nothing of
   *  the rate: no row was worked on, and it would take rows for very fast ones. */
  private def adapt(nowNs: Long): Unit = {
    if (!rested) {
      val done = Math.max(1, rows - rowsLeft)
      val tookNs = Math.max(1L, nowNs - lookedNs)
      val most = Math.min(Allowance.MostRows, rows * 4)
      rows = Math.max(1L, Math.min(most.toLong, done * clock.lookNs / tookNs)).toInt
    }
    rested = false
    rowsLeft = rows
    lookedNs = nowNs
  }

  // --- for any thread ---

  /** The most it may use from now on, in cores; Free: as much as it can. */
  def limit(most: Double): Unit = if (most != cores) {
    cores = most
    look = true
  }

  /** Whether it shares in the pool, and how many cores are reserved for it (0: none). */
  def join(isIn: Boolean, share: Double): Unit = {
    reservedCores = share
    pooled = isIn
  }

  /** Look at the next row. Needed only where there is a limit. */
  def lookSoon(): Unit = if (cores != Allowance.Free || pooled) look = true

  /** It waits no longer, if it does, and looks at what was ordered. */
  def wake(): Unit = {
    val thread = resting
    if (thread != null) LockSupport.unpark(thread)
  }

  /** Whether its epoch begins or ends now. */
  def isLifted(nowNs: Long): Boolean =
    ending || begunNs == 0L || nowNs - begunNs < beginningNs || isCut()

  /** Time for which it was held back so far. */
  def throttledNsBy(nowNs: Long): Long = {
    val since = throttledSinceNs
    stoppedNs + throttledNs + (if (since == 0L) 0L else Math.max(0L, nowNs - since))
  }

  /** Its group has stopped it for so much longer. By one thread only. */
  def stoppedBy(ns: Long): Unit = stoppedNs += ns

  /** Its group holds it to its present limit from now on, or no longer. */
  def heldInGroup(isHeld: Boolean): Unit = heldMs = if (isHeld) clock.wallMs() else 0L

  /** Since when its thread goes by the present limit, in milliseconds since 1970; 0 if it does not. */
  def heldSinceMs: Long = heldMs
}

object Allowance {
  val Free: Double = Double.MaxValue
  /**
   * A thread that waits hears of an order at once, since it is woken, and of anything else after this time. Shorter
   * waits cost too much: 200 of them in a second use a whole per cent of a core.
   */
  val SliceNs = 50000000L
  /** The first rows of an epoch load and compile code. */
  val BeginningNs = 250000000L
  /** Where they find that done, only state is to be opened. At epochs of 5 s this adds a point to what a limit says. */
  val ShortBeginningNs = 50000000L
  private val MostRows = 1 << 16
}
