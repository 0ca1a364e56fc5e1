package org.apache.spark.barograph.telemetry

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class HistogramTest {
  private def totals(ms: Long*): Seq[Long] = {
    val histogram = new Histogram
    ms.foreach(histogram.record)
    histogram.totals().toSeq
  }

  @Test def anEmptyHistogramHasNoBuckets(): Unit = assertEquals(Seq(0L, 0L), totals())

  @Test def smallLatenciesAreExact(): Unit = {
    assertEquals((0 until 128).toSeq, (0L until 128L).map(Histogram.bucket))
    assertEquals(Seq(12L, 7L, 2L, 1L, 3L, 1L, 7L, 1L), totals(7L, 2L, 3L))
  }

  @Test def aNegativeLatencyCountsAsZero(): Unit = assertEquals(Seq(5L, 5L, 0L, 1L, 5L, 1L), totals(-3L, 5L))

  @Test def bucketsHaveNoGapsAndAreNarrow(): Unit = {
    val edges = (1L to 20000L).filter(ms => Histogram.bucket(ms) != Histogram.bucket(ms - 1)) :+ 20001L
    edges.sliding(2).foreach { case Seq(first, next) =>
      assertEquals(Histogram.bucket(first) + 1, Histogram.bucket(next - 1) + 1)
      val middle = (first + next - 1) / 2.0
      assertTrue((next - 1 - middle) / first <= 0.008, s"$first to $next")
    case _ =>
    }
    assertEquals((1 to Histogram.bucket(20000L)).toSeq, edges.init.map(Histogram.bucket))
  }

  @Test def theLargestLatenciesShareTheLastBucket(): Unit = {
    assertEquals(Histogram.Buckets - 1, Histogram.bucket(Long.MaxValue))
    assertEquals(Histogram.Buckets - 1, Histogram.bucket((1L << 40) - 1))
    assertTrue(Histogram.bucket(1L << 39) < Histogram.Buckets - 1)
  }

  @Test def differencesOfTotalsAddUp(): Unit = {
    val gauge = new LatencyTotals
    val first = totals(5L, 5L, 300L).toArray
    val second = totals(5L, 5L, 300L, 5L, 1000L).toArray
    gauge.add(Array.emptyLongArray, first, 1L)
    gauge.add(first, second, 2L)
    assertEquals(1315L, gauge.sumMs)
    assertEquals(1000L, gauge.maxMs)
    val rows = gauge.rows.indices.filter(gauge.rows(_) > 0).map(b => b -> gauge.rows(b)).toMap
    assertEquals(Map(5 -> 3L, Histogram.bucket(300L) -> 1L, Histogram.bucket(1000L) -> 1L), rows)
  }
}
