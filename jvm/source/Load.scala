package org.apache.spark.barograph.source

/**
 * When each row of a load is due. The same IEEE operations in the same order as `barograph.model.loads.schedule`, so
 * that both agree to the millisecond; tests/vectors/replay.json checks it. It has no clock: all times are since the
 * load's start.
 *
 * Segments have no gaps and start at 0; the last one's final rate holds for ever. Row k of partition p of n is row g =
 * k * n + p of all; row g is due when the integral of the rate reaches g.
 */
final class Load private (
    startS: Array[Double],
    endS: Array[Double],
    rateStart: Array[Double],
    rateEnd: Array[Double])
  extends Serializable {

  private val last = startS.length - 1

  private val slope = Array.tabulate(startS.length)(i => (rateEnd(i) - rateStart(i)) / (endS(i) - startS(i)))

  /** Rows due before each segment, and before the rate that holds after the last. */
  private val rowsBefore: Array[Double] = {
    val counts = new Array[Double](startS.length + 1)
    for (i <- startS.indices) counts(i + 1) = counts(i) + (rateStart(i) + rateEnd(i)) * 0.5 * (endS(i) - startS(i))
    counts
  }

  override def toString: String = s"${startS.length} segments"

  /** When row g is due, in seconds; infinite if never. */
  def dueS(row: Long): Double = {
    val g = row.toDouble
    val i = Load.lastNotAbove(rowsBefore, g)
    val c = g - rowsBefore(i)
    if (i > last) {
      if (rateEnd(last) > 0.0) endS(last) + c / rateEnd(last) else Double.PositiveInfinity
    } else if (c <= 0.0) {
      startS(i)
    } else {
      val r0 = rateStart(i)
      val root = Math.sqrt(Math.max(0.0, r0 * r0 + 2.0 * slope(i) * c))
      Math.min(endS(i), startS(i) + 2.0 * c / (r0 + root))
    }
  }

  /** When row k of a partition is due, in whole milliseconds; Long.MaxValue for never. */
  def dueMs(partition: Int, k: Long, partitions: Int): Long = {
    // toLong turns infinity, and everything beyond a long, into Long.MaxValue.
    Math.floor(dueS(k * partitions + partition) * 1000.0).toLong
  }

  /** The integral of the rate until then. */
  private def rowsBy(tS: Double): Double = {
    if (tS <= 0.0) {
      0.0
    } else if (tS >= endS(last)) {
      rowsBefore(last + 1) + rateEnd(last) * (tS - endS(last))
    } else {
      val i = Load.lastNotAbove(startS, tS)
      val dt = tS - startS(i)
      rowsBefore(i) + (rateStart(i) + (rateStart(i) + slope(i) * dt)) * 0.5 * dt
    }
  }

  /** How many rows of the partition are due by then: exactly the number of k with dueMs(k) <= tMs. */
  def rowsDue(partition: Int, partitions: Int, tMs: Long): Long = {
    if (tMs < 0) return 0L
    val guess = Math.max(0L, ((rowsBy((tMs + 1) / 1000.0) - partition) / partitions).toLong)
    // The guess is right except for rounding: widen until it is bracketed, then bisect.
    var low = Math.max(0L, guess - 2)
    var high = guess + 2
    while (low > 0 && dueMs(partition, low - 1, partitions) > tMs) low = Math.max(0L, low - (high - low))
    while (dueMs(partition, high, partitions) <= tMs) high += high - low
    while (low < high) {
      val middle = (low + high) / 2
      if (dueMs(partition, middle, partitions) <= tMs) low = middle + 1 else high = middle
    }
    low
  }

  /** How many rows the partition has if the source is closed at `closeS`: those due before that moment. */
  def rowsUntil(partition: Int, partitions: Int, closeS: Double): Long =
    rowsDue(partition, partitions, Math.floor(closeS * 1000.0).toLong - 1)
}

object Load {
  /** Reads `start:end:rate:rate` joined by `;`. */
  def decode(text: String): Load = {
    val rows = text.split(";", -1).map { piece =>
      val fields = piece.split(":", -1)
      def wrong = new IllegalArgumentException(s"'$piece' is not a segment start:end:rate:rate")
      if (fields.length != 4) throw wrong
      val numbers = try fields.map(_.toDouble) catch { case _: NumberFormatException => throw wrong }
      if (numbers.exists(v => v.isNaN || v.isInfinite || v < 0) || numbers(1) <= numbers(0)) throw wrong
      numbers
    }
    var expected = 0.0
    rows.foreach { row =>
      if (row(0) != expected) {
        throw new IllegalArgumentException(s"a segment starts at ${row(0)} s where the one before ends at $expected s")
      }
      expected = row(1)
    }
    new Load(rows.map(_(0)), rows.map(_(1)), rows.map(_(2)), rows.map(_(3)))
  }

  /** The last position whose value is not above v; among equal values the last, so pauses are skipped. */
  private def lastNotAbove(sorted: Array[Double], v: Double): Int = {
    var low = 0
    var high = sorted.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (sorted(middle) <= v) low = middle + 1 else high = middle
    }
    low - 1
  }
}
