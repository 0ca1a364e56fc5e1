package org.apache.spark.barograph.enforce

import java.io.IOException
import java.nio.file.{Files, Path}

import org.apache.spark.barograph.orders.Share
import org.apache.spark.barograph.telemetry.Life
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** An executor with one instance, on a folder that takes the place of its control group. */
class EnforcerTest {
  @TempDir var folder: Path = _

  private val instance = new Life("t", "enforcer-run", 0L, "split", 0, "1", 7, 11, 1L)
  private var wish = Way.Cgroup
  private var share: Share = Share(20000L, 0L)
  private var refuses = ""
  private var now = System.nanoTime()
  private val pid = ProcessHandle.current().pid()

  /** As the kernel would: the files of a group are there as soon as it is, and a thread is in one group. */
  private def write(file: Path, text: String): Unit = {
    if (refuses.nonEmpty) throw new IOException(refuses)
    Files.writeString(file, text)
  }

  private lazy val enforcer = new Enforcer(
    new Groups(() => OwnGroup(1, folder, folder), pid, write), () => Seq(instance), () => wish, _ => share, "",
    new Pool, () => 0L, () => now)

  private def group: Path = folder.resolve(s"barograph-$pid").resolve("t@split@0")
  private def quota: String = Files.readString(group.resolve("cpu.cfs_quota_us"))

  /** The epoch of the instance is under way: it has taken its first row, and a second has passed. */
  private def begin(): Unit = {
    instance.allowance.waitNs()
    now = System.nanoTime() + 1000000000L
  }

  @Test def anInstanceIsInItsGroupOnceItsEpochHasBegun(): Unit = {
    enforcer.look()
    assertFalse(Files.exists(group), "it has not begun")
    begin()
    enforcer.look()
    assertEquals(("4000", "11"), (quota, Files.readString(group.resolve("tasks"))))
    assertEquals(Enforced("cgroup", ""), enforcer.enforced)
    assertTrue(instance.allowance.heldSinceMs > 0L)
    share = Share(50000L, 0L)
    enforcer.look()
    assertEquals("10000", quota)
  }

  @Test def anErrorIsSaidAndTriedAgainAndLimitsAreHeldMeanwhile(): Unit = {
    begin()
    refuses = "Permission denied"
    enforcer.look()
    val said = enforcer.enforced
    assertEquals(Way.Cooperative, said.way)
    assertTrue(said.because.contains("Permission denied; control groups are tried again in 1 s"), said.because)
    enforcer.look()
    assertEquals(said, enforcer.enforced, "it is not tried at once")
    now += 1100000000L
    enforcer.look()
    assertTrue(enforcer.enforced.because.endsWith("in 2 s"), enforcer.enforced.because)
    refuses = ""
    now += 1100000000L
    enforcer.look()
    assertEquals(Way.Cooperative, enforcer.enforced.way, "the second wait is longer")
    now += 1100000000L
    enforcer.look()
    assertEquals(Enforced("cgroup", ""), enforcer.enforced)
    assertEquals("4000", quota)
  }

  @Test def manyErrorsAreTriedOnceAMinute(): Unit = {
    begin()
    refuses = "Invalid argument"
    for (_ <- 1 to 100) { enforcer.look(); now += 61000000000L }
    assertTrue(enforcer.enforced.because.endsWith("in 60 s"), enforcer.enforced.because)
  }

  @Test def anotherWayLeavesNoGroups(): Unit = {
    begin()
    enforcer.look()
    wish = Way.Auto
    // A kernel removes a group with its files; this folder does not.
    Files.list(group).forEach(f => Files.delete(f))
    Files.list(group.getParent).filter(Files.isRegularFile(_)).forEach(f => Files.delete(f))
    enforcer.look()
    assertFalse(Files.exists(group.getParent))
    assertEquals("cooperative", enforcer.enforced.way)
  }

  @Test def offLimitsNothing(): Unit = {
    begin()
    wish = Way.Off
    enforcer.look()
    assertEquals(Enforced("off", "enforce is off"), enforcer.enforced)
    assertFalse(Files.exists(group))
    assertEquals(0L, instance.allowance.heldSinceMs)
  }

  @Test def groupsOfExecutorsThatAreGoneAreRemoved(): Unit = {
    val gone = Files.createDirectories(folder.resolve("barograph-4194305/t@split@0"))
    val foreign = Files.createDirectories(folder.resolve("barograph-other"))
    begin()
    enforcer.look()
    assertFalse(Files.exists(gone.getParent))
    assertTrue(Files.exists(foreign))
  }

  @Test def timeInAGroupIsCounted(): Unit = {
    begin()
    enforcer.look()
    Files.writeString(group.resolve("cpu.stat"), "nr_periods 5\nnr_throttled 3\nthrottled_time 700\n")
    now += 1100000000L
    enforcer.look()
    assertEquals(700L, instance.allowance.throttledNsBy(now))
    now += 1100000000L
    enforcer.look()
    assertEquals(700L, instance.allowance.throttledNsBy(now), "it is counted once")
  }
}
