package org.apache.spark.barograph.telemetry

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(60)
class OutputRingTest {
  private val Start = 180000000000L

  private def after(ring: OutputRing, cursor: Long): Seq[(Long, Long)] = {
    var seen = Seq.empty[(Long, Long)]
    ring.after(cursor)((centisecond, rows) => seen :+= (centisecond -> rows))
    seen
  }

  @Test def countsOfACentisecondAddUpAndComeOldestFirst(): Unit = {
    val ring = new OutputRing(size = 100)
    ring.add(Start + 3L, 2L, 1L)
    ring.add(Start + 1L, 5L, 2L)
    ring.add(Start + 3L, 4L, 3L)
    assertEquals(Seq(Start + 1L -> 5L, Start + 3L -> 6L), after(ring, 0L))
    assertEquals(Seq(Start + 3L -> 6L), after(ring, 2L))
    assertEquals(Nil, after(ring, 3L))
  }

  @Test def theNewestAreKept(): Unit = {
    val ring = new OutputRing(size = 100)
    for (k <- 0L until 1000L) ring.add(Start + k, k + 1L, k + 1L)
    assertEquals((900L until 1000L).map(k => Start + k -> (k + 1L)), after(ring, 0L))
  }

  /** By less than the ring is long, by more, and by a multiple of it. */
  @Test def rowsCountAfterTheClockWasSetBackAndForth(): Unit = {
    for (back <- Seq(50L, 101L, 1000L, 1000000L)) {
      val ring = new OutputRing(size = 100)
      for (k <- 0L until 100L) ring.add(Start + k, 7L, k + 1L)
      for (k <- 0L until 30L) ring.add(Start - back + k, 1L, 101L + k)
      assertEquals((0L until 30L).map(k => Start - back + k -> 1L), after(ring, 100L), s"$back")
      for (k <- 0L until 30L) ring.add(Start + 200L + k, 3L, 131L + k)
      assertEquals((0L until 30L).map(k => Start + 200L + k -> 3L), after(ring, 130L), s"$back")
    }
  }
}
