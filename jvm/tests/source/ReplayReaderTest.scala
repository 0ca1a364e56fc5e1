package org.apache.spark.barograph.source

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(30)
class ReplayReaderTest {
  private val HourMs = 3600000L
  private val replay =
    Replay("0:10:4:4", 1, LineShape(1L, 8, 2000, 1.0), text = false, startMs = None, closeS = None, untilRows = None)

  private def reader(end: Long, clock: () => Long): ReplayReader =
    new ReplayReader(ReplayPartition(replay, 2L * HourMs, 0, 0L, end), clock)

  /** An hour after the load's start; then it is set back by three. */
  private def setBack(): () => Long = {
    var nowMs = 3L * HourMs
    () => {
      val ms = nowMs
      nowMs = 0L
      ms
    }
  }

  @Test def aClosedSourceWaitsForItsTimeoutOnlyThoughTheClockIsSetBack(): Unit = {
    val closed = reader(0L, setBack())
    val beganNs = System.nanoTime()
    assertFalse(closed.nextWithTimeout(3L * HourMs, 50L).hasRecord)
    assertTrue(System.nanoTime() - beganNs >= 49000000L, "it returned early, which ends the epoch")
  }

  @Test def aRowThatIsNotDueYetIsWaitedForNoLonger(): Unit = {
    val clock = setBack()
    clock() // from now on it is two hours before the load's start
    assertFalse(reader(Long.MaxValue, clock).nextWithTimeout(0L, 50L).hasRecord)
  }

  @Test def rowsThatAreDueComeAtOnce(): Unit = {
    val due = reader(Long.MaxValue, () => 3L * HourMs)
    for (k <- 0L until 3L) {
      assertTrue(due.nextWithTimeout(3L * HourMs, 0L).hasRecord)
      assertEquals(k, due.get().getLong(1))
    }
  }
}
