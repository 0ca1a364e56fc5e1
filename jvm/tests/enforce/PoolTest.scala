package org.apache.spark.barograph.enforce

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class PoolTest {
  private val MsNs = 1000000L

  /** One of several threads, each with a core of its own: what it wants to use, and what it has used. */
  private final class Worker(clock: () => Long, pool: Pool, limit: Double, share: Double, wants: Double) {
    var cpu = 0L
    private var rests = 0L
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
      allowance.lookSoon()
      val wait = allowance.waitNs()
      if (wait > 0L) rests = clock() + wait else cpu += MsNs / 10
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
}
