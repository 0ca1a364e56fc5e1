package org.apache.spark.barograph.source

import java.util

import scala.collection.mutable

import org.apache.spark.barograph.telemetry.Histogram
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write.{DataWriter, LogicalWriteInfo, PhysicalWriteInfo, Write, WriteBuilder}
import org.apache.spark.sql.connector.write.WriterCommitMessage
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A sink that times rows and drops them, for runs without the plug-in: it uses only Spark's interface of a sink. Every
 * row is timed by its own barograph_due_ms and barograph_read_ms; the counts of each task reach the driver in its
 * commit message at the end of the epoch. So only committed rows are counted, and nothing is known of an epoch before
 * its end.
 *
 * The option `name` is a name for the rows; [[TimedSink.told]] returns what was committed under it.
 */
class TimedSink extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType()

  override def getTable(schema: StructType, transforms: Array[Transform], map: util.Map[String, String]): Table =
    new TimedTable(new CaseInsensitiveStringMap(map).getOrDefault("name", ""))
}

/** What one task counted in one epoch: [[Histogram.totals]] of both clocks, and (centisecond, rows) pairs. */
final case class TimedRows(due: Array[Long], read: Array[Long], output: Array[Long]) extends WriterCommitMessage

object TimedSink {
  /** Sums of [[Histogram.totals]]. */
  private final class Times {
    private var sumMs, maxMs = 0L
    private val rows = mutable.TreeMap[Long, Long]()

    def add(totals: Array[Long]): Unit = {
      sumMs += totals(0)
      maxMs = Math.max(maxMs, totals(1))
      for (Array(bucket, n) <- totals.drop(2).grouped(2)) rows(bucket) = rows.getOrElse(bucket, 0L) + n
    }

    override def toString: String =
      (Seq(sumMs, maxMs) ++ rows.toSeq.flatMap { case (bucket, n) => Seq(bucket, n) }).mkString(",")
  }

  private final class Sum {
    val due, read = new Times
    val output = mutable.TreeMap[Long, Long]()
    var epochs = 0L
  }

  private val sums = mutable.Map[String, Sum]()

  /** An epoch that Spark commits again after a failure is counted again, because its rows were output again. */
  private[barograph] def committed(name: String, rows: Seq[TimedRows]): Unit = synchronized {
    val sum = sums.getOrElseUpdate(name, new Sum)
    sum.epochs += 1
    for (task <- rows) {
      sum.due.add(task.due)
      sum.read.add(task.read)
      for (Array(centisecond, n) <- task.output.grouped(2)) {
        sum.output(centisecond) = sum.output.getOrElse(centisecond, 0L) + n
      }
    }
  }

  /**
   * Four lines: epochs; of due and of read the sum, the maximum and (bucket, rows) pairs; (centisecond, rows) pairs.
   * One string, because a list would pass to Python number by number.
   */
  def told(name: String): String = synchronized {
    val sum = sums.getOrElse(name, new Sum)
    Seq(
      sum.epochs.toString, sum.due.toString, sum.read.toString,
      sum.output.toSeq.flatMap { case (centisecond, n) => Seq(centisecond, n) }.mkString(",")).mkString("\n")
  }
}

private final class TimedTable(rowsOf: String) extends Table with SupportsWrite {
  override def name(): String = "timed"
  override def schema(): StructType = new StructType()
  override def capabilities(): util.Set[TableCapability] =
    util.EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA)
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new TimedWriteBuilder(rowsOf, info.schema())
}

private final class TimedWriteBuilder(rowsOf: String, schema: StructType)
  extends WriteBuilder with SupportsStreamingUpdateAsAppend {
  override def build(): Write = new Write {
    override def toStreaming: StreamingWrite = new TimedWrite(rowsOf, schema)
  }
}

private final class TimedWrite(rowsOf: String, schema: StructType) extends StreamingWrite {
  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory =
    TimedWriterFactory(schema.fieldIndex("barograph_due_ms"), schema.fieldIndex("barograph_read_ms"))
  override def useCommitCoordinator(): Boolean = false
  override def commit(epochId: Long, messages: Array[WriterCommitMessage]): Unit =
    TimedSink.committed(rowsOf, messages.toSeq.collect { case rows: TimedRows => rows })
  override def abort(epochId: Long, messages: Array[WriterCommitMessage]): Unit = ()
}

private final case class TimedWriterFactory(due: Int, read: Int) extends StreamingDataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long, epochId: Long): DataWriter[InternalRow] =
    new TimedWriter(due, read)
}

private final class TimedWriter(dueColumn: Int, readColumn: Int) extends DataWriter[InternalRow] {
  private val due, read = new Histogram
  private val output = mutable.ArrayBuilder.make[Long]
  private var centisecond, rows = 0L

  override def write(row: InternalRow): Unit = {
    val now = System.currentTimeMillis()
    if (now / 10 != centisecond) flush(now / 10)
    rows += 1
    due.record(now - row.getLong(dueColumn))
    read.record(now - row.getLong(readColumn))
  }

  private def flush(next: Long): Unit = {
    if (rows > 0) output += centisecond += rows
    centisecond = next
    rows = 0L
  }

  override def commit(): WriterCommitMessage = {
    flush(0L)
    TimedRows(due.totals(), read.totals(), output.result())
  }

  override def abort(): Unit = ()
  override def close(): Unit = ()
}
