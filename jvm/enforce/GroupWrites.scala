package org.apache.spark.barograph.enforce

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Path
import java.security.MessageDigest

import org.apache.spark.barograph.orders.{InstanceKey, Share}

final case class Write(path: Path, content: String)

/** The group of an instance: its thread, and what is written for it. */
final case class InstanceGroup(tid: Int, quota: Quota, weight: Long)

/** Everything that is written below the executor's own group. weight, quota: of all its instances together. */
final case class Written(weight: Long, quota: Option[Quota], groups: Map[InstanceKey, InstanceGroup]) {
  /** The same, with quotas that must all be written again. */
  def unsure: Written = {
    val none = Quota(0L, 1L)
    copy(quota = Some(none), groups = groups.map { case (i, g) => i -> g.copy(quota = none) })
  }
}

object Written {
  val nothing: Written = Written(0L, None, Map.empty)
}

/** The groups of one executor. saves: whether the kernel lets a group save unused quota of its last periods. */
final case class ExecutorGroup(own: OwnGroup, pid: Long, saves: Boolean) {
  val all: Path = own.path.resolve(GroupWrites.Prefix + pid)
  def of(instance: InstanceKey): Path = all.resolve(GroupWrites.nameOf(instance))
}

/**
 * Which files must be written so that every instance's thread has its limit: in an order that the kernel accepts at
 * every step. Pure: it reads nothing and writes nothing.
 *
 * {{{
 *  OWN                          the executor's own group; network, GC and compiler threads stay here
 *  OWN/barograph-PID            all its instances together: what OWN may use, less a reserve for the others
 *  OWN/barograph-PID/INSTANCE   one instance: its quota
 * }}}
 *
 * A group that does not exist yet is made before the first write into it. Version 1 moves single threads (`tasks`);
 * version 2 does so only inside a threaded subtree, whose root is the executor's own group.
 */
object GroupWrites {
  val Prefix = "barograph-"
  val LeastQuotaUs = 1000L // the kernel refuses less
  /**
   * A throttled thread waits for the rest of its period, and if that happens inside Java code, all threads of its JVM
   * wait for it at the next garbage collection. So a limit gets the shortest of these that the kernel accepts for it.
   */
  private val PeriodsUs = Seq(20000L, 30000L, 50000L, 100000L)
  private val ReserveParts = 20L // one part of so many is not for instances
  private val ThreadWeight = Map(1 -> 1024L, 2 -> 100L) // the scheduler's weight of a plain thread
  private val Weights = Map(1 -> (2L, 262144L), 2 -> (1L, 10000L))
  private val LongestName = 200

  /** `@` is in no file of the kernel. A name that may not be one of a file, or is too long, is replaced by a digest. */
  def nameOf(instance: InstanceKey): String = {
    val name = s"${instance.topology}@${instance.operator}@${instance.index}"
    if (name.length <= LongestName && name.matches("[A-Za-z0-9._@-]+")) name
    else {
      val digest = MessageDigest.getInstance("SHA-256").digest(name.getBytes(UTF_8))
      s"digest@${digest.take(16).map(b => f"${b & 0xff}%02x").mkString}@${instance.index}"
    }
  }

  /** The limit as a quota: at most a core, at most `together`, at least what the kernel accepts. */
  def quotaOf(limitMilliPct: Long, together: Option[Quota]): Quota = {
    val least = LeastQuotaUs * 100000L / PeriodsUs.last
    val milliPct = Math.min(100000L, Math.max(least, limitMilliPct))
    val periodUs = PeriodsUs.find(p => milliPct * p >= LeastQuotaUs * 100000L).getOrElse(PeriodsUs.last)
    val quota = Quota(Math.max(LeastQuotaUs, milliPct * periodUs / 100000L), periodUs)
    together.filter(quota.isAbove).getOrElse(quota)
  }

  /** The same rate in a short period, less the reserve, rounded down so that it is never above the fence. */
  def lessReserve(fence: Quota): Quota = {
    def in(periodUs: Long): Long = fence.quotaUs * periodUs * (ReserveParts - 1) / ReserveParts / fence.periodUs
    Seq(PeriodsUs.head, fence.periodUs).find(in(_) >= LeastQuotaUs).map(p => Quota(in(p), p)).getOrElse(fence)
  }

  /** What should be written. fence: what the executor's own group may use, None if it has no quota. */
  def wanted(version: Int, fence: Option[Quota], held: Map[InstanceKey, (Int, Share)]): Written =
    if (held.isEmpty) Written.nothing
    else {
      val together = fence.map(lessReserve)
      // A group competes with the threads beside it as if it were one thread. So that no thread starves, an instance
      // weighs what is reserved for it, as a part of a plain thread, and all instances together weigh the sum.
      val groups = held.map { case (instance, (tid, share)) =>
        val reserved = if (share.reservedMilliPct > 0) share.reservedMilliPct else share.limitMilliPct
        val weighed = weight(version, Math.min(100000L, reserved))
        instance -> InstanceGroup(tid, quotaOf(share.limitMilliPct, together), weighed)
      }
      val all = held.values.map { case (_, s) =>
        if (s.reservedMilliPct > 0) s.reservedMilliPct else s.limitMilliPct
      }.sum
      Written(weight(version, all), together, groups)
    }

  private def weight(version: Int, milliPct: Long): Long = {
    val (least, most) = Weights(version)
    Math.min(most, Math.max(least, Math.round(ThreadWeight(version) * milliPct / 100000.0)))
  }

  /** Moves a thread back to the executor's other threads. */
  def home(own: OwnGroup, tid: Int): Write = Write(own.path.resolve(own.threads), tid.toString)

  /** From `before` to `after`: only differences. */
  def writes(of: ExecutorGroup, before: Written, after: Written): Seq[Write] = {
    val own = of.own
    val staying = after.groups.values.map(_.tid).toSet
    val leaving = before.groups.values.map(_.tid).filterNot(staying).map(home(own, _)).toSeq
    val fresh = after.groups.keys.filterNot(before.groups.contains).toSeq.sortBy(nameOf)
    val first = before.groups.isEmpty && after.groups.nonEmpty
    // A group with processes passes the cpu controller only to threaded groups, so groups become threaded first.
    val threaded =
      if (own.version != 2) Nil
      else {
        (if (first) Seq(Write(of.all.resolve("cgroup.type"), "threaded")) else Nil) ++
          fresh.map(i => Write(of.of(i).resolve("cgroup.type"), "threaded")) ++
          (if (first) Seq(own.path, of.all).map(p => Write(p.resolve("cgroup.subtree_control"), "+cpu")) else Nil)
      }
    // Version 1 refuses a child's quota above its parent's, whichever of the two is written. A parent without a quota
    // has the quota of its own parent, which is never below; so the parent's quota is lifted first and written last.
    val change = after.quota != before.quota
    val lifted =
      if (!change) Nil
      else {
        (if (before.quota.isDefined) Seq(lift(own, of.all)) else Nil) ++
          before.groups.keys.filterNot(after.groups.contains).map(i => lift(own, of.of(i))) // they still count
      }
    val weighed =
      if (after.groups.nonEmpty && after.weight != before.weight) Seq(weigh(own, of.all, after.weight)) else Nil
    val each = after.groups.toSeq.sortBy(g => nameOf(g._1))
    val limited = each.flatMap { case (instance, group) =>
      val old = before.groups.get(instance)
      (if (old.forall(_.weight != group.weight)) Seq(weigh(own, of.of(instance), group.weight)) else Nil) ++
        (if (old.forall(_.quota != group.quota)) limitOne(of, of.of(instance), group.quota, old.map(_.quota)) else Nil)
    }
    val together = if (change) after.quota.toSeq.flatMap(limit(own, of.all, _, None)) else Nil
    // Threads come last, so that no thread runs in a group that has no limit yet.
    val entering = each.collect {
      case (instance, group) if before.groups.get(instance).forall(_.tid != group.tid) =>
        Write(of.of(instance).resolve(own.threads), group.tid.toString)
    }
    leaving ++ threaded ++ lifted ++ weighed ++ limited ++ together ++ entering
  }

  /** Groups to remove afterwards. */
  def gone(of: ExecutorGroup, before: Written, after: Written): Seq[Path] =
    before.groups.keys.filterNot(after.groups.contains).map(of.of).toSeq

  private def weigh(own: OwnGroup, group: Path, weight: Long): Write =
    Write(group.resolve(if (own.version == 1) "cpu.shares" else "cpu.weight"), weight.toString)

  private def lift(own: OwnGroup, group: Path): Write =
    if (own.version == 1) Write(group.resolve("cpu.cfs_quota_us"), "-1") else Write(group.resolve("cpu.max"), "max")

  /**
   * An instance's limit. Rows come in bursts: an instance that left quota of its last periods unused may use it now, up
   * to one quota more, instead of waiting for the next period. The kernel refuses savings above the quota.
   */
  private def limitOne(of: ExecutorGroup, group: Path, quota: Quota, old: Option[Quota]): Seq[Write] = {
    def save(us: Long): Seq[Write] = if (of.saves) Seq(Write(group.resolve(of.own.savings), us.toString)) else Nil
    (if (old.exists(quota.quotaUs < _.quotaUs)) save(0L) else Nil) ++ limit(of.own, group, quota, old) ++
      save(quota.quotaUs)
  }

  private def limit(own: OwnGroup, group: Path, quota: Quota, old: Option[Quota]): Seq[Write] =
    if (own.version == 2) Seq(Write(group.resolve("cpu.max"), s"${quota.quotaUs} ${quota.periodUs}"))
    else {
      // Two files: between the two writes old and new values mix. Without a quota any period is accepted.
      val period = if (old.exists(_.periodUs == quota.periodUs)) Nil
        else Seq(lift(own, group), Write(group.resolve("cpu.cfs_period_us"), quota.periodUs.toString))
      period :+ Write(group.resolve("cpu.cfs_quota_us"), quota.quotaUs.toString)
    }
}
