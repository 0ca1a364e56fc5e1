package org.apache.spark.barograph.shuffle

import io.netty.buffer.ByteBuf

/**
 * The record times of rows that follow each other, as runs: so many rows, and the oldest of their times. A run begins
 * when the time changes, so times are exact to the millisecond. If there would be more than [[TimeRuns.Most]] runs,
 * neighbours are joined: then a row may count as older than it is, by at most the span of times of its run, and never
 * as younger. Makes no objects. Used by one thread at a time.
 */
final class TimeRuns {
  private val rows = new Array[Int](TimeRuns.Most)
  private val oldestMs, newestMs = new Array[Long](TimeRuns.Most)
  private var count = 0
  private var spanMs = 0L // of a run, at most
  // While it is read: the present run, and how many of its rows are left.
  private var at, left = 0

  def clear(): Unit = { count = 0; spanMs = 0L }

  def add(ms: Long): Unit = {
    if (count == TimeRuns.Most && !fits(count - 1, ms, ms)) coarsen()
    if (fits(count - 1, ms, ms)) {
      join(count - 1, ms, ms)
      rows(count - 1) += 1
    } else {
      rows(count) = 1
      oldestMs(count) = ms
      newestMs(count) = ms
      count += 1
    }
  }

  private def fits(run: Int, oldest: Long, newest: Long): Boolean =
    run >= 0 && Math.max(newestMs(run), newest) - Math.min(oldestMs(run), oldest) <= spanMs

  private def join(run: Int, oldest: Long, newest: Long): Unit = {
    if (oldest < oldestMs(run)) oldestMs(run) = oldest
    if (newest > newestMs(run)) newestMs(run) = newest
  }

  /** Allow longer spans until half of the runs are free. */
  private def coarsen(): Unit = while (count > TimeRuns.Most / 2) {
    spanMs = Math.max(1L, 2 * spanMs)
    var kept = 0
    var run = 1
    while (run < count) {
      if (fits(kept, oldestMs(run), newestMs(run))) {
        join(kept, oldestMs(run), newestMs(run))
        rows(kept) += rows(run)
      } else {
        kept += 1
        rows(kept) = rows(run)
        oldestMs(kept) = oldestMs(run)
        newestMs(kept) = newestMs(run)
      }
      run += 1
    }
    count = kept + 1
  }

  /**
   * Writes them behind the rows of a buffer. Spark's reader of rows takes a row of length -1 for the end of a message,
   * as it does the end of the bytes, and looks at nothing behind it.
   */
  def write(to: ByteBuf): Unit = {
    to.writeInt(TimeRuns.EndOfRows)
    var run = 0
    while (run < count) {
      to.writeInt(rows(run)).writeLong(oldestMs(run))
      run += 1
    }
    to.writeInt(count).writeInt(TimeRuns.Mark)
  }

  /** Begins to read the times of a message of so many bytes; it has none if they were not written. */
  def read(from: ByteBuf, size: Int): Unit = {
    val end = from.readerIndex() + size
    val told = if (size >= TimeRuns.Frame && from.getInt(end - 4) == TimeRuns.Mark) from.getInt(end - 8) else 0
    val start = end - TimeRuns.Frame - told.toLong * TimeRuns.Run
    count =
      if (told < 0 || told > TimeRuns.Most || start < from.readerIndex() ||
        from.getInt(start.toInt) != TimeRuns.EndOfRows) 0
      else told
    var run = 0
    while (run < count) {
      val place = start.toInt + 4 + run * TimeRuns.Run
      rows(run) = from.getInt(place)
      oldestMs(run) = from.getLong(place + 4)
      run += 1
    }
    at = 0
    left = if (count > 0) rows(0) else 0
  }

  /** The time of the next row; 0: unknown. */
  def next(): Long =
    if (count == 0) 0L
    else {
      if (left == 0 && at + 1 < count) { at += 1; left = rows(at) }
      if (left > 0) left -= 1
      oldestMs(at)
    }
}

object TimeRuns {
  val Most = 32
  private val EndOfRows = -1
  private val Mark = 0x42415254 // the end of a message that we did not mark could be anything
  private val Run = 12
  private val Frame = 12
}
