package org.apache.spark.barograph.telemetry

import scala.collection.mutable

/**
 * Rows that left a topology, by centisecond since 1970, of five minutes. Each count knows when it last changed, so that
 * a reader gets only those that are new to it. A place in the ring belongs to the centisecond that was counted there
 * last, earlier or later than the one before: the wall clock may be set back by any amount.
 */
final class OutputRing(size: Int = OutputRing.Centiseconds) {
  private val centiseconds = new Array[Long](size)
  private val rows = new Array[Long](size)
  private val stamps = new Array[Long](size)
  private var stamp = 0L

  def add(centisecond: Long, count: Long, at: Long): Unit = {
    val i = Math.floorMod(centisecond, size)
    if (centiseconds(i) != centisecond) {
      centiseconds(i) = centisecond
      rows(i) = 0L
    }
    rows(i) += count
    stamps(i) = at
    stamp = at
  }

  /** (centisecond, rows) of all that changed after the cursor, oldest first. */
  def after(cursor: Long)(take: (Long, Long) => Unit): Unit = if (stamp > cursor) {
    val changed = mutable.ArrayBuilder.make[Int]
    var i = 0
    while (i < size) {
      if (stamps(i) > cursor) changed += i
      i += 1
    }
    for (place <- changed.result().sortBy(centiseconds(_))) take(centiseconds(place), rows(place))
  }
}

object OutputRing {
  val Centiseconds = 30000
}
