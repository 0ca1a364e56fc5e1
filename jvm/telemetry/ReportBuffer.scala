package org.apache.spark.barograph.telemetry

import scala.collection.mutable

/**
 * What executors have reported and `observe` has not taken yet. Bounded: above its limit it drops the oldest lives and
 * the newest counts of rows.
 */
object ReportBuffer {
  private val lives = mutable.LinkedHashMap[(String, Long, String, Int), LifeReport]()
  private val output = mutable.Map[(String, Long), Long]()
  private val LivesKept = 200000
  private val OutputKept = 100000

  def reset(): Unit = synchronized { lives.clear(); output.clear() }

  def take(reports: Seq[LifeReport]): Unit = synchronized {
    for (r <- reports) {
      val key = (r.runId, r.epoch, r.operator, r.index)
      lives.remove(key)
      lives(key) = r.copy(output = Array.emptyLongArray, meter = null)
      if (lives.size > LivesKept) lives.remove(lives.head._1)
      for (Array(centisecond, count) <- r.output.grouped(2)) {
        val at = (r.topology, centisecond)
        if (output.size < OutputKept) output(at) = output.getOrElse(at, 0L) + count
      }
    }
  }

  /** The lives that still run, and those that ended since the last call. */
  def takeLives(): Seq[LifeReport] = synchronized {
    val all = lives.values.toSeq
    all.filter(_.endedMs > 0).foreach(r => lives.remove((r.runId, r.epoch, r.operator, r.index)))
    all
  }

  /** Rows out since the last call: (topology, centisecond since 1970, rows). */
  def takeOutput(): Seq[(String, Long, Long)] = synchronized {
    val all = output.map { case ((topology, centisecond), rows) => (topology, centisecond, rows) }.toSeq
    output.clear()
    all
  }
}
