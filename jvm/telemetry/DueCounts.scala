package org.apache.spark.barograph.telemetry

import scala.collection.mutable

/**
 * Up to which row a partition's rows are counted as arrived. reader: the instance that reads it in the present epoch;
 * null: none has said so yet.
 */
final class DueCount(val operator: String, val load: Long, private[telemetry] var rows: Long) {
  private[telemetry] var reader: InstanceTotals = _

  /** The partition is due up to there now. Returns how many rows of it were not counted before; a count never falls. */
  def upTo(due: Long): Long = {
    val more = Math.max(0L, due - rows)
    rows += more
    more
  }
}

/**
 * Of the sources of one topology, by what [[DueRows.load]] names. A row arrives once, over epochs and restarts and
 * whichever instance reads its partition: when a topic grows, a connector may deal out all of its partitions anew.
 */
final class DueCounts(kept: Int = 10000) {
  private val counts = mutable.Map[(String, Long), List[DueCount]]()

  /** Partitions may be dealt out anew. Those that are not read any more are forgotten when there are very many. */
  def epochBegins(): Unit = {
    if (counts.size > kept) counts.filterInPlace((_, same) => same.exists(_.reader != null))
    counts.values.foreach(_.foreach(_.reader = null))
  }

  /**
   * The count of a partition. last: of what the instance read before, or null. start: for a partition that is new.
   * present: whether it reads it in the present epoch; a late report of an earlier one claims nothing.
   */
  def of(instance: InstanceTotals, last: DueCount, load: Long, start: Long, present: Boolean): DueCount = {
    lazy val same = counts.getOrElse((instance.operator, load), Nil)
    val found =
      if (last != null && last.load == load && (last.reader == null || last.reader == instance)) last
      // More than one of the same name: an operator that reads a topic twice counts its rows twice.
      else same.find(c => !present || c.reader == null).getOrElse {
        val made = new DueCount(instance.operator, load, start)
        counts((instance.operator, load)) = made :: same
        made
      }
    if (present) found.reader = instance
    found
  }
}
