package org.apache.spark.barograph.telemetry

/**
 * Rows that left a topology, by centisecond since 1970, of the last five minutes. Each count knows when it last
 * changed, so that a reader gets only those that are new to it.
 */
final class OutputRing(size: Int = OutputRing.Centiseconds) {
  private val rows = new Array[Long](size)
  private val stamps = new Array[Long](size)
  private var newest = 0L
  private var stamp = 0L

  def add(centisecond: Long, count: Long, at: Long): Unit = {
    if (centisecond > newest) {
      val cleared = Math.min(size.toLong, centisecond - newest)
      var c = centisecond - cleared + 1
      while (c <= centisecond) {
        rows((c % size).toInt) = 0L
        stamps((c % size).toInt) = 0L
        c += 1
      }
      newest = centisecond
    }
    if (centisecond > newest - size) {
      val i = (centisecond % size).toInt
      rows(i) += count
      stamps(i) = at
      stamp = at
    }
  }

  /** (centisecond, rows) of all that changed after the cursor, oldest first. */
  def after(cursor: Long)(take: (Long, Long) => Unit): Unit = if (stamp > cursor) {
    var c = Math.max(0L, newest - size + 1)
    while (c <= newest) {
      val i = (c % size).toInt
      if (stamps(i) > cursor) take(c, rows(i))
      c += 1
    }
  }
}

object OutputRing {
  val Centiseconds = 30000
}
