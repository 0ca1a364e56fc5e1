package org.apache.spark.barograph

import scala.collection.mutable

/** What executors have reported and nobody has taken yet. Bounded: the oldest go first. */
object Sightings {
  private val lives = mutable.LinkedHashMap[(String, Long, String, Int), LifeReport]()
  private val output = mutable.Map[(String, Long), Long]()
  private val LivesKept = 200000
  private val OutputKept = 100000
  var dropped: Long = 0L

  def reset(): Unit = synchronized { lives.clear(); output.clear() }

  def take(reports: Seq[LifeReport]): Unit = synchronized {
    for (r <- reports) {
      val key = (r.runId, r.epoch, r.operator, r.index)
      lives.remove(key)
      lives(key) = r.copy(output = Array.emptyLongArray, meter = null)
      if (lives.size > LivesKept) { lives.remove(lives.head._1); dropped += 1 }
      for (Array(tenth, count) <- r.output.grouped(2)) {
        if (output.size < OutputKept) output((r.topology, tenth)) = output.getOrElse((r.topology, tenth), 0L) + count
        else dropped += 1
      }
    }
  }

  /** Lives: those that run, and those that ended since the last call. */
  def takeLives(): Seq[LifeReport] = synchronized {
    val all = lives.values.toSeq
    all.filter(_.endedMs > 0).foreach(r => lives.remove((r.runId, r.epoch, r.operator, r.index)))
    all
  }

  /** Rows out since the last call: (topology, 10 ms of wall time, rows). */
  def takeOutput(): Seq[(String, Long, Long)] = synchronized {
    val all = output.map { case ((topology, tenth), rows) => (topology, tenth, rows) }.toSeq
    output.clear()
    all
  }
}
