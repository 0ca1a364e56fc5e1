package org.apache.spark.barograph.source

import org.apache.spark.barograph.telemetry.{DueRows, TimesItsWaits}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.unsafe.types.UTF8String

/** Rows from start until end (Long.MaxValue: no end) of one partition; startMs is the load's start as epoch time. */
case class ReplayPartition(replay: Replay, startMs: Long, partition: Int, start: Long, end: Long)
  extends InputPartition with DueRows {

  override def load: Long = startMs * ReplayPartition.MostPartitions + partition

  override def position(read: Long): Long = start + read

  override def dueRows(nowMs: Long): Long =
    Math.min(end, replay.load.rowsDue(partition, replay.partitions, nowMs - startMs))
}

object ReplayPartition {
  private val MostPartitions = 1L << 20 // for names only
}

/** k: the first row of the partition that was not read. */
case class ReplayPartitionOffset(partition: Int, k: Long) extends PartitionOffset

object ReplayReaderFactory extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new ReplayReader(partition.asInstanceOf[ReplayPartition])
}

/**
 * Makes the rows of one partition. As a real-time reader it hands out a row when it is due, and overdue rows at once;
 * as a plain reader it hands out its range without reading the clock.
 *
 * All rows are one object, as in Spark's own file readers: code that keeps a row must copy it.
 */
final class ReplayReader(range: ReplayPartition, clock: () => Long = () => System.currentTimeMillis())
  extends SupportsRealTimeRead[InternalRow] with TimesItsWaits {
  private val replay = range.replay
  private val lines = new Lines(replay.lines)
  private val seed = lines.seedOf(range.partition)
  private val buffer = lines.newBuffer()
  private val row = new SpecificInternalRow(replay.schema.fields.map(_.dataType).toIndexedSeq)
  row.setInt(0, range.partition)

  private var k = range.start // of the row to be handed out next
  private var nextDueMs = dueMs(k)
  private var currentDueMs = 0L
  private var seenMs = 0L // the clock when it was last read: it is read only when no row is known to be due
  private var status: RecordStatus = _
  private var readMs = 0L // when the current row was handed out

  private def dueMs(k: Long): Long = {
    val sinceStart = replay.load.dueMs(range.partition, k, replay.partitions)
    if (sinceStart > Long.MaxValue - range.startMs) Long.MaxValue else range.startMs + sinceStart
  }

  private def advance(): Unit = {
    currentDueMs = nextDueMs
    k += 1
    nextDueMs = dueMs(k)
  }

  override def next(): Boolean = k < range.end && {
    advance()
    if (replay.readTime) readMs = clock()
    true
  }

  override def nextWithTimeout(timeoutMs: java.lang.Long): RecordStatus =
    nextWithTimeout(clock(), timeoutMs)

  /** The engine has just read the clock for this row, so its read time costs nothing. */
  override def nextWithTimeout(nowMs: java.lang.Long, timeoutMs: java.lang.Long): RecordStatus = {
    readMs = nowMs
    if (k >= range.end || nextDueMs > seenMs) {
      if (!waitUntilDue(timeoutMs)) return RecordStatus.newStatusWithoutArrivalTime(false)
      readMs = seenMs
    }
    val sameMs = status != null && nextDueMs == currentDueMs
    advance()
    if (!sameMs) status = RecordStatus.newStatusWithArrivalTimeMs(currentDueMs)
    status
  }

  /**
   * A closed source waits too: to return early would end the epoch, and the next ones, as fast as they can start. The
   * wait is so long on the monotonic clock: it would hear no cut for as long as the wall clock was set back.
   */
  private def waitUntilDue(timeoutMs: Long): Boolean = {
    val wakeMs = if (k >= range.end) Long.MaxValue else nextDueMs
    seenMs = clock()
    if (seenMs < wakeMs && timeoutMs > 0L) {
      if (meter != null) meter.idleBegins()
      val beganNs = System.nanoTime()
      var leftMs = timeoutMs
      while (seenMs < wakeMs && leftMs > 0L) {
        Thread.sleep(Math.min(wakeMs - seenMs, leftMs))
        seenMs = clock()
        leftMs = timeoutMs - (System.nanoTime() - beganNs) / 1000000L
      }
      if (meter != null) meter.idleEnds()
    }
    seenMs >= wakeMs
  }

  override def get(): InternalRow = {
    row.setLong(1, k - 1)
    row.setLong(2, currentDueMs)
    if (replay.text) {
      row.update(3, UTF8String.fromBytes(buffer, 0, lines.write(seed, k - 1, buffer)))
    } else {
      row.setLong(3, lines.number(seed, k - 1))
    }
    if (replay.readTime) row.setLong(4, readMs)
    row
  }

  override def getOffset: PartitionOffset = ReplayPartitionOffset(range.partition, k)

  override def close(): Unit = ()
}
