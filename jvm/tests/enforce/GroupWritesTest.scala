package org.apache.spark.barograph.enforce

import java.nio.file.Path

import scala.collection.mutable

import org.apache.spark.barograph.orders.{InstanceKey, Share}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class GroupWritesTest {
  private val own = Path.of("/own")
  private val groups = Map(1 -> group(1), 2 -> group(2))
  private val (a, b) = (InstanceKey("wc", "split", 0), InstanceKey("wc", "count", 1))
  private val fence = Some(Quota(50000L, 100000L))

  private def group(version: Int): ExecutorGroup = ExecutorGroup(OwnGroup(version, own, own), 7L, saves = true)
  private def pct(limit: Double, reserved: Double = 0.0): Share = Share((limit * 1000).toLong, (reserved * 1000).toLong)
  private def wanted(version: Int, held: (InstanceKey, (Int, Share))*): Written =
    GroupWrites.wanted(version, fence, held.toMap)

  /** As short texts: the path below /own, and the content. */
  private def listed(version: Int, before: Written, after: Written): Seq[String] =
    GroupWrites.writes(groups(version), before, after).map(w => s"${own.relativize(w.path)} = ${w.content}")

  @Test def theFirstLimitOfVersion1(): Unit = assertEquals(
    Seq(
      "barograph-7/cpu.shares = 205", "barograph-7/wc@split@0/cpu.shares = 205",
      "barograph-7/wc@split@0/cpu.cfs_quota_us = -1", "barograph-7/wc@split@0/cpu.cfs_period_us = 20000",
      "barograph-7/wc@split@0/cpu.cfs_quota_us = 4000", "barograph-7/wc@split@0/cpu.cfs_burst_us = 4000",
      "barograph-7/cpu.cfs_quota_us = -1", "barograph-7/cpu.cfs_period_us = 20000",
      "barograph-7/cpu.cfs_quota_us = 9500", "barograph-7/wc@split@0/tasks = 11"),
    listed(1, Written.nothing, wanted(1, a -> (11, pct(20.0)))))

  @Test def theFirstLimitOfVersion2(): Unit = assertEquals(
    Seq(
      "barograph-7/cgroup.type = threaded", "barograph-7/wc@split@0/cgroup.type = threaded",
      "cgroup.subtree_control = +cpu", "barograph-7/cgroup.subtree_control = +cpu",
      "barograph-7/cpu.weight = 20", "barograph-7/wc@split@0/cpu.weight = 20",
      "barograph-7/wc@split@0/cpu.max = 4000 20000", "barograph-7/wc@split@0/cpu.max.burst = 4000",
      "barograph-7/cpu.max = 9500 20000", "barograph-7/wc@split@0/cgroup.threads = 11"),
    listed(2, Written.nothing, wanted(2, a -> (11, pct(20.0)))))

  @Test def onlyDifferencesAreWritten(): Unit = {
    val before = wanted(1, a -> (11, pct(20.0)), b -> (12, pct(10.0)))
    assertEquals(Nil, listed(1, before, before))
    assertEquals(Seq("barograph-7/wc@split@0/tasks = 13").prepended("tasks = 11"),
      listed(1, before, wanted(1, a -> (13, pct(20.0)), b -> (12, pct(10.0)))))
  }

  @Test def quotasThatAreUnsureAreWrittenAgain(): Unit = {
    val held = wanted(1, a -> (11, pct(20.0)))
    assertEquals(
      Seq(
        "barograph-7/cpu.cfs_quota_us = -1", "barograph-7/wc@split@0/cpu.cfs_quota_us = -1",
        "barograph-7/wc@split@0/cpu.cfs_period_us = 20000", "barograph-7/wc@split@0/cpu.cfs_quota_us = 4000",
        "barograph-7/wc@split@0/cpu.cfs_burst_us = 4000", "barograph-7/cpu.cfs_quota_us = -1",
        "barograph-7/cpu.cfs_period_us = 20000", "barograph-7/cpu.cfs_quota_us = 9500"),
      listed(1, held.unsure, held))
  }

  @Test def savingsNeverExceedTheQuota(): Unit = {
    val found = listed(1, wanted(1, a -> (11, pct(40.0))), wanted(1, a -> (11, pct(10.0)))).filter(_.contains("wc@"))
    assertEquals(
      Seq("cpu.shares = 102", "cpu.cfs_burst_us = 0", "cpu.cfs_quota_us = 2000", "cpu.cfs_burst_us = 2000")
        .map("barograph-7/wc@split@0/" + _), found)
  }

  @Test def whatIsReservedIsTheWeight(): Unit = {
    val found = GroupWrites.wanted(1, None, Map(a -> (11, pct(80.0, 30.0)), b -> (12, pct(50.0))))
    assertEquals((307L, 512L, 819L), (found.groups(a).weight, found.groups(b).weight, found.weight))
    assertEquals(None, found.quota)
  }

  @Test def aLimitHasTheShortestPeriodThatTheKernelAccepts(): Unit = {
    assertEquals(Quota(20000L, 20000L), GroupWrites.quotaOf(250000L, None))
    assertEquals(Quota(1000L, 20000L), GroupWrites.quotaOf(5000L, None))
    assertEquals(Quota(1200L, 30000L), GroupWrites.quotaOf(4000L, None))
    assertEquals(Quota(1000L, 100000L), GroupWrites.quotaOf(0L, None))
    assertEquals(Quota(9500L, 20000L), GroupWrites.quotaOf(90000L, Some(Quota(9500L, 20000L))))
  }

  @Test def theReserveLeavesSomethingToSmallExecutors(): Unit = {
    assertEquals(Quota(19000L, 20000L), GroupWrites.lessReserve(Quota(100000L, 100000L)))
    assertEquals(Quota(1900L, 100000L), GroupWrites.lessReserve(Quota(2000L, 100000L)))
    assertEquals(Quota(1000L, 100000L), GroupWrites.lessReserve(Quota(1000L, 100000L)))
  }

  @Test def namesAreNamesOfFiles(): Unit = {
    assertEquals("wc@split@0", GroupWrites.nameOf(a))
    val odd = Seq("a/b", "..", "x y", "ü", "n" * 300).map(t => GroupWrites.nameOf(InstanceKey(t, "o", 3)))
    assertEquals(odd.size, odd.distinct.size)
    assertTrue(odd.forall(n => n.length < 200 && !n.contains("/") && n.endsWith("@3") && n != ".."))
  }

  /** Version 1 refuses a quota of a child above that of its parent, at every step and whichever is written. */
  @Test def theKernelAcceptsEveryStep(): Unit = {
    val random = new scala.util.Random(3)
    val quota = mutable.Map[Path, Long]().withDefaultValue(-1L)
    val period = mutable.Map[Path, Long]().withDefaultValue(100000L)
    def rate(g: Path): Double = if (quota(g) < 0) Double.MaxValue else quota(g).toDouble / period(g)
    var before = Written.nothing
    for (_ <- 1 to 300) {
      val held = Seq(a, b, a.copy(index = 1)).filter(_ => random.nextInt(4) > 0)
        .map(i => i -> (random.nextInt(5) + 1, pct(1.0 + random.nextInt(99), random.nextInt(50).toDouble))).toMap
      val around = Seq(None, fence, Some(Quota(3000L, 20000L)), Some(Quota(100000L, 100000L)))(random.nextInt(4))
      val after = GroupWrites.wanted(1, around, held)
      for (w <- GroupWrites.writes(groups(1), before, after)) {
        val group = w.path.getParent
        w.path.getFileName.toString match {
          case "cpu.cfs_quota_us" => quota(group) = w.content.toLong
          case "cpu.cfs_period_us" => period(group) = w.content.toLong
          case _ =>
        }
        val all = groups(1).all
        for (child <- quota.keys.toSeq if child.getParent == all && quota(child) >= 0) {
          assertTrue(rate(child) <= rate(all) + 1e-12, s"$w")
        }
      }
      GroupWrites.gone(groups(1), before, after).foreach { g => quota -= g; period -= g }
      before = after
    }
  }
}
