package org.apache.spark.barograph.enforce

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class BucketTest {
  private val MsNs = 1000000L

  /** The part of a core that a thread gets that always wants to work and looks after every `sliceNs` of work. */
  private def used(cores: Double, sliceNs: Long, seconds: Double): Double = {
    val bucket = new Bucket
    var now, cpu = 0L
    val end = (seconds * 1e9).toLong
    while (now < end) {
      val wait = bucket.waitNs(now, cpu, cores)
      if (wait > 0L) now += wait else { now += sliceNs; cpu += sliceNs }
    }
    cpu.toDouble / now
  }

  @Test def aBusyThreadGetsItsLimit(): Unit = for (cores <- Seq(0.01, 0.05, 0.2, 0.6, 0.95)) {
    assertEquals(cores, used(cores, MsNs, 10.0), 0.01 * cores + 40e-3 * cores / 10.0 + 0.001)
    assertEquals(cores, used(cores, MsNs, 1.0), 0.25 * cores)
  }

  @Test def aLongRowIsPaidBack(): Unit = {
    val bucket = new Bucket
    bucket.waitNs(0L, 0L, 0.1)
    val wait = bucket.waitNs(1000 * MsNs, 1000 * MsNs, 0.1) // one row took a second of CPU
    assertTrue(wait >= 8900 * MsNs, s"$wait")
    assertEquals(0L, bucket.waitNs(1000 * MsNs + wait, 1000 * MsNs, 0.1))
  }

  @Test def aHigherLimitPaysBackSooner(): Unit = {
    val bucket = new Bucket
    bucket.waitNs(0L, 0L, 0.1)
    val slow = bucket.waitNs(1000 * MsNs, 1000 * MsNs, 0.1)
    val fast = bucket.waitNs(1000 * MsNs, 1000 * MsNs, 0.9)
    assertTrue(fast < slow / 5)
  }

  @Test def savingsAreBounded(): Unit = {
    val bucket = new Bucket
    bucket.waitNs(0L, 0L, 0.5)
    assertEquals(0L, bucket.waitNs(60000 * MsNs, 0L, 0.5)) // idle for a minute
    assertEquals(0L, bucket.waitNs(60010 * MsNs, 10 * MsNs, 0.5), "a burst of ten milliseconds was saved")
    assertTrue(bucket.waitNs(60060 * MsNs, 60 * MsNs, 0.5) > 0L, "one of sixty was not")
  }

  /** At a low limit the waits would otherwise use up what they leave. */
  @Test def betweenTwoWaitsThereIsWorkToDo(): Unit =
    for (cores <- Seq(0.01, 0.016, 0.05); wakeNs <- Seq(0L, 13000L, MsNs / 10)) {
      val bucket = new Bucket
      val (sliceNs, endNs) = (MsNs / 10, 10000 * MsNs)
      var now, cpu, worked = 0L
      var waits = 0
      while (now < endNs) {
        val wait = Math.min(bucket.waitNs(now, cpu, cores), Allowance.SliceNs)
        if (wait > 0L) { now += wait; cpu += wakeNs; waits += 1 }
        else { now += sliceNs; cpu += sliceNs; worked += sliceNs }
      }
      val setting = s"at $cores cores, $wakeNs ns for waking up"
      assertTrue(worked >= 0.5 * cores * endNs, s"$worked ns of work $setting")
      assertTrue(cpu <= 1.1 * cores * endNs + 2 * MsNs, s"$cpu ns used $setting")
      assertTrue(waits <= 10 * (1000 * cores * 2 + 20), s"$waits waits $setting")
    }

  @Test def aLimitOfNothingIsTheLeastThatAGroupCanHave(): Unit =
    assertEquals(used(0.01, MsNs, 10.0), used(0.0, MsNs, 10.0))

  @Test def whatIsForgottenIsNotOwed(): Unit = {
    val bucket = new Bucket
    bucket.waitNs(0L, 0L, 0.1)
    assertTrue(bucket.waitNs(1000 * MsNs, 1000 * MsNs, 0.1) > 0L)
    bucket.forget()
    assertEquals(0L, bucket.waitNs(1001 * MsNs, 1001 * MsNs, 0.1))
  }

  /** Waits are worth their cost: a thread at 60 % does not stop for every millisecond of work. */
  @Test def waitsAreNotTooShort(): Unit = {
    val bucket = new Bucket
    var now, cpu = 0L
    var waits = 0
    while (now < 1000 * MsNs) {
      val wait = bucket.waitNs(now, cpu, 0.6)
      if (wait > 0L) { now += wait; waits += 1 } else { now += MsNs; cpu += MsNs }
    }
    assertTrue(waits <= 100, s"$waits")
  }
}
