package org.apache.spark.barograph.telemetry

import java.util.concurrent.CompletableFuture

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

class MeterTest {
  @Test def countsAreOfEachReceiver(): Unit = {
    val sent = new Counters(3)
    sent.increment(0)
    sent.increment(2)
    sent.increment(2)
    assertEquals(Seq(1L, 0L, 2L), sent.values.toSeq)
    assertEquals(2L, sent.own(2))
  }

  @Test def aWaitCountsWhileItLasts(): Unit = {
    val meter = new Meter
    assertFalse(meter.idle)
    meter.idleBegins()
    assertTrue(meter.idle)
    val nowNs = System.nanoTime()
    assertEquals(1000L, meter.idleNsBy(nowNs + 1000L) - meter.idleNsBy(nowNs))
    meter.idleEnds()
    assertFalse(meter.idle)
    assertEquals(meter.idleNsBy(nowNs), meter.idleNsBy(nowNs + 1000L))
    assertEquals(0L, meter.blockedNsBy(nowNs))
  }

  @Test def aCallThatWorkedIsNotIdle(): Unit = {
    val meter = new Meter
    meter.idleBegins()
    meter.callEnds(500L, waited = false)
    meter.idleBegins()
    meter.callEnds(700L, waited = true)
    assertFalse(meter.idle)
    assertEquals(700L, meter.idleNsBy(System.nanoTime()))
  }

  // With plain fields the compiler may read a count once, before the loop.
  @Test @Timeout(30) def aThreadThatLooksAgainSeesNewCounts(): Unit = {
    val meter = new Meter
    meter.sent = new Counters(1)
    val rows = 20000000L
    val seen = CompletableFuture.supplyAsync { () =>
      while (!meter.idle) {}
      (meter.executed.value, meter.sent.values.sum)
    }
    val writer = new Thread(() => {
      var i = 0L
      while (i < rows) { meter.executed.increment(); meter.sent.increment(0); i += 1 }
      meter.idleBegins()
    })
    writer.start()
    assertEquals((rows, rows), seen.get(), "a thread that sees the wait sees every row that was counted before")
    writer.join()
  }
}
