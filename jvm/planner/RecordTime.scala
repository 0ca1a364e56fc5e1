package org.apache.spark.barograph.planner

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus

/**
 * The record time of a source's row: the time that the source states for it; else that in the source's own column of
 * times; else the time at which it was read. A time of 0 or before is not one.
 */
object RecordTime {
  /** Kafka's reader has the record's time in the row, and does not state it. */
  private val OwnColumns = Map("org.apache.spark.sql.kafka010.KafkaMicroBatchStream" -> "timestamp")

  /** The column of a source that has one. */
  def columnOf(stream: MicroBatchStream, output: Seq[Attribute]): TimeColumn =
    OwnColumns.get(stream.getClass.getName).fold(TimeColumn.Unknown)(TimeColumn.of(output, _))

  /** Called for each row: the clock is read only if the source does not state a time. */
  def of(status: RecordStatus): Long = {
    val stated = status.recArrivalTime()
    val ms = if (stated.isPresent) stated.get.longValue else 0L
    if (ms > 0L) ms else System.currentTimeMillis()
  }

  /** The time in the row's own column; `other` if it has none. */
  def of(row: InternalRow, column: TimeColumn, other: Long): Long =
    if (row.isNullAt(column.position)) other
    else {
      val ms = row.getLong(column.position) / column.unitsPerMs
      if (ms > 0L) ms else other
    }
}
