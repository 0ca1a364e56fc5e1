package org.apache.spark.barograph.telemetry

import java.util.ArrayDeque

import scala.collection.mutable
import scala.jdk.CollectionConverters._

/** What became of a life: it began, it ended, or an epoch after it has begun. Its report has no meter and no output. */
final case class LifeChange(stamp: Long, life: LifeReport)

/** The last changes of lives, oldest first. Bounded: it drops the oldest. */
final class LifeLog(kept: Int = LifeLog.Kept) {
  private val changes = new ArrayDeque[LifeChange]()

  def add(stamp: Long, life: LifeReport): Unit = {
    changes.addLast(LifeChange(stamp, life.copy(output = Array.emptyLongArray, meter = null)))
    if (changes.size > kept) changes.removeFirst()
  }

  /** Lives that changed after the cursor, each as it was after its last change. */
  def after(cursor: Long): Seq[LifeReport] = {
    val found = mutable.LinkedHashMap[(String, Long, String, Int), LifeReport]()
    changes.descendingIterator().asScala.takeWhile(_.stamp > cursor).foreach { change =>
      val l = change.life
      found.getOrElseUpdate((l.runId, l.epoch, l.operator, l.index), l)
    }
    found.values.toSeq.reverse
  }

  def size: Int = changes.size

  def clear(): Unit = changes.clear()
}

object LifeLog {
  val Kept = 50000
}
