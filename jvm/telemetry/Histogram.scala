package org.apache.spark.barograph.telemetry

/**
 * How often each latency occurred: log-linear buckets, so that histograms of instances and seconds merge by addition
 * and percentiles of a sum are as exact as those of a part. Whole milliseconds below 128 have a bucket each; above,
 * each power of two is divided into 64, and the middle of a bucket is within 0.8 % of every value in it.
 * `barograph.engines.latency` has the same buckets; a test compares them.
 *
 * One thread writes and another may read meanwhile: it sees some rows a moment late, never a row twice.
 */
final class Histogram {
  private val counts = new Array[Long](Histogram.Buckets)
  private var sumMs = 0L
  private var maxMs = 0L

  def record(ms: Long): Unit = {
    // Clocks of two machines may differ a little: a negative latency counts as 0.
    val value = if (ms < 0) 0L else ms
    counts(Histogram.bucket(value)) += 1
    sumMs += value
    if (value > maxMs) maxMs = value
  }

  /** Everything so far: sum, maximum, then (bucket, rows) pairs of the buckets that are not empty. */
  def totals(): Array[Long] = {
    val found = Array.newBuilder[Long]
    found += sumMs += maxMs
    var i = 0
    while (i < counts.length) {
      val n = counts(i)
      if (n > 0) { found += i.toLong += n }
      i += 1
    }
    found.result()
  }
}

object Histogram {
  /** Up to 2^40 ms, 35 years; values above count as that. */
  private val LargestMs = (1L << 40) - 1
  val Buckets: Int = bucket(LargestMs) + 1

  def bucket(ms: Long): Int = {
    val value = Math.min(ms, LargestMs)
    if (value < 128) value.toInt
    else {
      val shift = 57 - java.lang.Long.numberOfLeadingZeros(value) // leaves 7 bits, the first of them 1
      64 * shift + (value >>> shift).toInt
    }
  }
}
