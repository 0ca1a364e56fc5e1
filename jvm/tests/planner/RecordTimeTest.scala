package org.apache.spark.barograph.planner

import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Assertions._

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, SpecificInternalRow}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, SupportsRealTimeRead}
import org.apache.spark.sql.types.{LongType, TimestampType}

class RecordTimeTest {
  private val micros = TimeColumn(0, 1000L)

  private def row(value: Option[Long]): SpecificInternalRow = {
    val made = new SpecificInternalRow(Seq(LongType))
    value.fold(made.setNullAt(0))(made.setLong(0, _))
    made
  }

  @Test def theTimeThatTheSourceStates(): Unit =
    assertEquals(5000L, RecordTime.of(SupportsRealTimeRead.RecordStatus.newStatusWithArrivalTimeMs(5000L)))

  @Test def elseTheTimeOfReading(): Unit = {
    val silent = Seq(
      SupportsRealTimeRead.RecordStatus.newStatusWithoutArrivalTime(true),
      SupportsRealTimeRead.RecordStatus.newStatusWithArrivalTimeMs(-1L))
    for (status <- silent) {
      val before = System.currentTimeMillis()
      val found = RecordTime.of(status)
      assertTrue(before <= found && found <= System.currentTimeMillis())
    }
  }

  @Test def theTimeInTheSourcesOwnColumn(): Unit = {
    assertEquals(1700000000123L, RecordTime.of(row(Some(1700000000123456L)), micros, 5L))
    assertEquals(5L, RecordTime.of(row(None), micros, 5L))
    assertEquals(5L, RecordTime.of(row(Some(-1000L)), micros, 5L), "Kafka's -1 for no time")
  }

  @Test def aColumnOfAnotherSourceIsNotItsRecordTime(): Unit = {
    val columns = Seq(AttributeReference("value", LongType)(), AttributeReference("timestamp", TimestampType)())
    assertFalse(RecordTime.columnOf(new OtherStream, columns).known)
  }

  private final class OtherStream extends MicroBatchStream {
    override def latestOffset(): Offset = null
    override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = Array.empty
    override def createReaderFactory(): PartitionReaderFactory = null
    override def initialOffset(): Offset = null
    override def deserializeOffset(json: String): Offset = null
    override def commit(end: Offset): Unit = ()
    override def stop(): Unit = ()
  }
}
