package org.apache.spark.barograph.shuffle

/**
 * The times of each buffer that a sender fills for one receiver. One thread fills buffers, one after the other; it or
 * another thread sends them, in that order and one at a time. So at most two buffers are known at once, the one that is
 * sent and the one that is filled, and each has its place.
 *
 * What one thread writes here another reads only after it has taken the buffer from it, which orders the two.
 */
final class BufferTimes {
  private val places = Array(new TimeRuns, new TimeRuns)
  private var filled, sent = 0

  /** By the thread that fills: a row goes into the present buffer, or into a fresh one. */
  def row(recordMs: Long, fresh: Boolean): Unit = {
    if (fresh) {
      filled ^= 1
      places(filled).clear()
    }
    places(filled).add(recordMs)
  }

  /** By the thread that sends: the times of the next buffer. */
  def next(): TimeRuns = {
    sent ^= 1
    places(sent)
  }
}
