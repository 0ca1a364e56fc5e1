package org.apache.spark.barograph.enforce

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class PoolTest {
  private val MsNs = 1000000L

  /**
   * One of several threads, each with a core of its own: what it wants to use, and what it has used. wakeNs: CPU that
   * it takes to wake up, which is no work.
   */
  private final class Worker(
      clock: () => Long, pool: Pool, limit: Double, share: Double, wants: Double, wakeNs: Long = 0L) {
    var cpu, waking = 0L
    private var rests = 0L
    private var rested = false
    private val own = new CpuClock {
      override def nowNs(): Long = clock()
      override def cpuNs(): Long = cpu
      override def wallMs(): Long = 1L
      override def lookNs: Long = MsNs
    }
    private val allowance = new Allowance(() => false, own, pool)
    allowance.limit(limit)
    allowance.join(isIn = true, share)

    /** A tenth of a millisecond passes. */
    def step(n: Long): Unit = if (clock() >= rests && n % 100 < wants * 100) {
      if (rested) { cpu += wakeNs; waking += wakeNs }
      allowance.lookSoon()
      val wait = allowance.waitNs()
      rested = wait > 0L
      if (rested) rests = clock() + wait else cpu += MsNs / 10
    }
  }

  /** The cores that each used over ten seconds. */
  private def used(cores: Double)(workers: (() => Long, Pool) => Seq[Worker]): Seq[Double] = {
    val pool = new Pool
    pool.limit(cores)
    var now = 1L
    val all = workers(() => now, pool)
    var from = Seq.empty[Long]
    for (n <- 0L until 110000L) {
      if (n == 10000L) from = all.map(_.cpu) // after the beginning of the epoch
      all.foreach(_.step(n))
      now += MsNs / 10
    }
    all.map(_.cpu).zip(from).map { case (cpu, before) => (cpu - before) / 1e10 }
  }

  @Test def allTogetherGetNoMoreThanThePool(): Unit = {
    val found = used(0.5)((clock, pool) => Seq.fill(4)(new Worker(clock, pool, 0.9, 0.05, 1.0)))
    assertEquals(0.5, found.sum, 0.03)
  }

  /** They would be guaranteed the least limit, a per cent, each. */
  @Test def manySmallSharesGetNoMoreThanThePool(): Unit = {
    val found = used(0.05)((clock, pool) => Seq.fill(8)(new Worker(clock, pool, 0.9, 0.002, 1.0)))
    assertEquals(0.05, found.sum, 0.005)
  }

  /** Several that wait would otherwise only wake each other up. */
  @Test def wakingUpDoesNotUseThePoolUp(): Unit =
    for (cores <- Seq(0.1, 0.5); count <- Seq(1, 4, 8)) {
      var all = Seq.empty[Worker]
      val found = used(cores) { (clock, pool) =>
        all = Seq.fill(count)(new Worker(clock, pool, 0.9, 0.0, 1.0, wakeNs = MsNs / 20))
        all
      }
      val waking = all.map(_.waking).sum / 1e10
      assertTrue(waking <= 0.5 * found.sum, s"$waking of ${found.sum} cores for waking up, $count in $cores cores")
    }

  @Test def anInstanceWithinItsShareIsNotHeldBackByTheOthers(): Unit = {
    val found = used(0.5)((clock, pool) => Seq(
      new Worker(clock, pool, 0.9, 0.3, 0.25), new Worker(clock, pool, 0.9, 0.1, 1.0)))
    assertEquals(0.25, found.head, 0.02)
    assertEquals(0.25, found.last, 0.04)
  }

  @Test def withoutAQuotaThereIsNoPool(): Unit = {
    val pool = new Pool
    assertFalse(pool.isBounded)
    val found = used(Allowance.Free)((clock, pool) => Seq(new Worker(clock, pool, Allowance.Free, 0.1, 1.0)))
    assertEquals(1.0, found.head, 0.001)
  }

  @Test def aLimitHoldsInThePoolToo(): Unit = {
    val found = used(0.8)((clock, pool) => Seq(new Worker(clock, pool, 0.2, 0.1, 1.0)))
    assertEquals(0.2, found.head, 0.02)
  }

  /** An instance with a share, by clocks that are moved by hand, in a pool of half a core. */
  private final class Single(share: Double) extends CpuClock {
    val pool = new Pool
    var now = 1L
    var cpu = 0L
    override def nowNs(): Long = now
    override def cpuNs(): Long = cpu
    override def wallMs(): Long = 1L
    override def lookNs: Long = MsNs
    private val allowance = new Allowance(() => false, this, pool)
    pool.limit(0.5)
    allowance.join(isIn = true, share)
    ask()
    now += 2 * Allowance.BeginningNs
    ask()

    def ask(): Long = {
      allowance.lookSoon()
      allowance.waitNs()
    }

    def work(ns: Long): Long = {
      now += ns
      cpu += ns
      ask()
    }

    /** Others use so much. */
    def others(ns: Long): Unit = { pool.waitNs(now, ns); () }
  }

  /** A share is not lost by what was used while there was enough. */
  @Test def whatIsUsedWhileAllHaveEnoughIsNotOwed(): Unit = {
    val one = new Single(0.15)
    for (_ <- 1 to 1000) { // four tenths of a core
      assertEquals(0L, one.work(2 * MsNs))
      one.now += 3 * MsNs
    }
    one.others(100 * MsNs)
    one.now += 10 * MsNs
    assertEquals(0L, one.work(MsNs), "it is within its share")
    assertTrue(one.work(20 * MsNs) > 0L, "it is above its share")
  }

  @Test def anInstanceAboveItsShareWaitsNoLongerThanThat(): Unit = {
    val one = new Single(0.1)
    one.others(100 * MsNs)
    val wait = one.work(5 * MsNs) // it had saved four
    assertTrue(wait > 0L && wait < 30 * MsNs, s"$wait")
  }

  /** The kernel has stopped all for that long ago. */
  @Test def littleIsOwed(): Unit = {
    val pool = new Pool
    pool.limit(0.5)
    pool.waitNs(MsNs, 0L)
    val wait = pool.waitNs(2 * MsNs, 60000 * MsNs)
    assertTrue(wait > 50 * MsNs && wait < 150 * MsNs, s"$wait")
  }
}
