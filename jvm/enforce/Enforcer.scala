package org.apache.spark.barograph.enforce

import java.io.IOException
import java.util.concurrent.{Executors, TimeUnit}

import org.apache.spark.barograph.orders.{InstanceKey, Share, Shares}
import org.apache.spark.barograph.telemetry.{Life, Lives}
import org.apache.spark.internal.Logging

/**
 * Holds the instances of this executor to the limits in its orders, by the way that is chosen ([[Way]]). It decides no
 * limit. Control groups that cannot be written are tried again, at first after a second and at last once a minute.
 */
final class Enforcer(
    groups: Groups,
    lives: () => Iterable[Life] = () => Lives.now,
    wish: () => String = () => Shares.wish,
    shareOf: InstanceKey => Share = Shares.of,
    noClock: String = CpuClock.problem,
    pool: Pool = Pool.here,
    quotaMilliCores: () => Long,
    nowNs: () => Long = () => System.nanoTime()) extends Logging {
  @volatile private var state = Way.chosen(Way.Auto, noClock, "")
  private var stopped = Map.empty[InstanceKey, Long]
  private var noGroups = ""
  private var failures = 0
  private var againNs, writtenNs = 0L
  private var held = Map.empty[InstanceKey, (Int, Share)]

  /** By which means limits are held here now. */
  def enforced: Enforced = state

  /** Once for each tick, and after each order. */
  def look(): Unit = synchronized {
    val now = lives().toSeq
    val wished = wish()
    if (Way.triesGroups(wished, noClock)) writeGroups(now) else leaveGroups()
    val before = state
    state = Way.chosen(wished, noClock, noGroups)
    if (state != before) {
      logWarning(s"CPU limits are held by: ${state.way}" + (if (state.because.isEmpty) "" else s" (${state.because})"))
    }
    val quota = quotaMilliCores()
    pool.limit(if (quota == 0L) Allowance.Free else quota / 1000.0 * (1.0 - Pool.Reserve))
    now.foreach { life =>
      val share = if (state.way == Way.Cooperative) shareOf(life.key) else null
      life.allowance.join(share != null, if (share == null) 0.0 else share.reservedMilliPct / 100000.0)
      life.allowance.limit(if (share == null || share.limitCores >= 1.0) Allowance.Free else share.limitCores)
      life.allowance.lookSoon()
    }
  }

  private def writeGroups(now: Seq[Life]): Unit = {
    val atNs = nowNs()
    if (noGroups.isEmpty || atNs - againNs >= 0) {
      val wanted = now.flatMap { life =>
        val share = shareOf(life.key)
        if (share == null || life.tid <= 0 || life.endedMs > 0 || life.allowance.isLifted(atNs)) None
        else Some(life.key -> (life.tid, share))
      }.toMap
      // A thread that an instance's thread starts is in its group, so groups are written again after a while.
      if (noGroups.nonEmpty || wanted != held || (held.nonEmpty && atNs - writtenNs >= Enforcer.AgainNs)) {
        val before = held
        countStops(now)
        write(wanted, atNs)
        now.foreach { life =>
          val (had, has) = (before.get(life.key), held.get(life.key))
          if (had != has) life.allowance.heldInGroup(has.isDefined)
        }
      }
    }
  }

  private def write(wanted: Map[InstanceKey, (Int, Share)], atNs: Long): Unit =
    try {
      groups.hold(wanted)
      stopped = stopped.filter { case (key, _) => wanted.contains(key) }
      held = wanted
      writtenNs = atNs
      noGroups = ""
      failures = 0
    } catch {
      case e: IOException =>
        val waitS = Math.min(Enforcer.LongestWaitS, 1L << Math.min(failures, 10))
        failures += 1
        againNs = atNs + waitS * 1000000000L
        noGroups = s"${e.getMessage}; control groups are tried again in $waitS s"
        held = Map.empty
        stopped = Map.empty
    }

  /** A group counts from its beginning; what is new of that belongs to the present epoch. */
  private def countStops(now: Seq[Life]): Unit = {
    val found = groups.throttledNs
    for (life <- now; ns <- found.get(life.key)) {
      val had = stopped.getOrElse(life.key, 0L)
      life.allowance.stoppedBy(if (ns >= had) ns - had else ns)
    }
    stopped = found
  }

  private def leaveGroups(): Unit = {
    groups.release()
    noGroups = ""
    failures = 0
    held = Map.empty
    stopped = Map.empty
  }

  private val clock = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, "barograph-enforce")
    thread.setDaemon(true)
    thread
  }

  def start(): Unit = {
    Shares.onOrder(() => if (!clock.isShutdown) clock.execute { () =>
      safely()
      lives().foreach(_.allowance.wake())
    })
    clock.scheduleWithFixedDelay(() => safely(), Enforcer.EveryMs, Enforcer.EveryMs, TimeUnit.MILLISECONDS)
  }

  def close(): Unit = {
    Shares.onOrder(() => ())
    clock.shutdownNow()
    synchronized(groups.release())
  }

  private def safely(): Unit =
    try look()
    catch {
      // A task that throws is not called again. Logging may fail for the same reason as the look.
      case e: Throwable =>
        try logWarning("limits could not be looked after; the next look tries again", e)
        catch { case _: Throwable => () }
    }
}

object Enforcer {
  val EveryMs = 50L
  private val AgainNs = 1000000000L
  private val LongestWaitS = 60L
}
