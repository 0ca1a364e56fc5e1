package org.apache.spark.barograph.planner

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.barograph.telemetry.{Histogram, Life, Lives}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.types.{LongType, TimestampType}

/** A query run, its topology, and an epoch. */
final case class Marks(topology: String, runId: String, epoch: Long)

/**
 * A column with a time, of the rows at the sink: its position, or -1 if no such column reaches the sink; and how many
 * of its units make a millisecond.
 */
final case class TimeColumn(position: Int, unitsPerMs: Long) {
  def known: Boolean = position >= 0
}

object TimeColumn {
  val Unknown: TimeColumn = TimeColumn(-1, 1L)

  /** A column of that name with epoch milliseconds, or a timestamp (which Spark keeps in microseconds). */
  def of(output: Seq[Attribute], name: String): TimeColumn = {
    val position = output.indexWhere(_.name.equalsIgnoreCase(name))
    if (position < 0) Unknown
    else output(position).dataType match {
      case LongType => TimeColumn(position, 1L)
      case TimestampType => TimeColumn(position, 1000L)
      case _ => Unknown
    }
  }
}

/** What is measured of rows at the sink: when each was due and when it was read, if the rows have these times. */
final case class SinkTimes(due: TimeColumn, read: TimeColumn)

/**
 * The top of an operator: states where each instance should run and tells the executor which instance it runs. It is at
 * the top because a state store further down also prefers a place, and the topmost preference wins.
 */
case class OperatorExec(
    child: SparkPlan, operator: String, sink: Option[SinkTimes], seats: Seq[String], marks: Marks)
  extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def doExecute(): RDD[InternalRow] =
    new OperatorRDD(child.execute(), operator, sink, seats, marks)
  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan = copy(child = newChild)
}

class OperatorRDD(
    parent: RDD[InternalRow], operator: String, sink: Option[SinkTimes], @transient seats: Seq[String], marks: Marks)
  extends RDD[InternalRow](parent) {

  override protected def getPartitions: Array[Partition] = firstParent[InternalRow].partitions

  override protected def getPreferredLocations(split: Partition): Seq[String] =
    seats.lift(split.index).filter(_.nonEmpty).map(seat => s"executor_$seat").toSeq

  override def compute(split: Partition, context: TaskContext): Iterator[InternalRow] = {
    val life = Lives.begin(marks, operator, split.index, context)
    val rows = firstParent[InternalRow].iterator(split, context)
    sink.fold(rows)(times => new SinkRows(rows, life, times))
  }
}

/**
 * Counts and times the rows that leave a topology: each by its own times, if it has them, and by the record time of the
 * row that caused it, which needs no column.
 */
final class SinkRows(rows: Iterator[InternalRow], life: Life, times: SinkTimes) extends Iterator[InternalRow] {
  private val due = if (times.due.known) new Histogram else null
  private val read = if (times.read.known) new Histogram else null
  life.meter.due = due
  life.meter.read = read
  private val record = new Histogram
  life.meter.record = record

  override def hasNext: Boolean = rows.hasNext

  override def next(): InternalRow = {
    val row = rows.next()
    val now = life.row()
    if (due != null) add(due, row, times.due, now)
    if (read != null) add(read, row, times.read, now)
    if (life.meter.recordMs > 0L) record.record(now - life.meter.recordMs)
    row
  }

  private def add(histogram: Histogram, row: InternalRow, column: TimeColumn, now: Long): Unit =
    if (!row.isNullAt(column.position)) histogram.record(now - row.getLong(column.position) / column.unitsPerMs)
}
