package org.apache.spark.barograph

import java.lang.{Long => JLong}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec

/** Spark's real-time scan, whose epoch can be ended by an order. */
class CuttableScan(
    output: Seq[Attribute],
    @transient scan: Scan,
    @transient stream: MicroBatchStream,
    @transient start: Offset,
    batchDurationMs: Long,
    runId: String,
    epoch: Long)
  extends RealTimeStreamScanExec(output, scan, stream, start, batchDurationMs) {

  override lazy val readerFactory: PartitionReaderFactory =
    new CuttableFactory(stream.createReaderFactory(), runId, epoch)

  // Spark copies plan nodes by the arguments of the case class, which are fewer than ours.
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(runId, Long.box(epoch))
}

class CuttableFactory(real: PartitionReaderFactory, runId: String, epoch: Long) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val reader = real.createReader(partition).asInstanceOf[SupportsRealTimeRead[InternalRow]]
    val life = Lives.current
    (partition, reader) match {
      case (load: ReplayPartition, replay: ReplayReader) if life != null =>
        life.meter.load = load
        replay.meter = life.meter
      case _ =>
    }
    new CuttableReader(reader, Cuts.of(runId), epoch)
  }
}

/** Says "no more" once its epoch is cut. The order names the epoch, so one that comes late cuts nothing else. */
class CuttableReader(real: SupportsRealTimeRead[InternalRow], cut: Cuts.Line, epoch: Long)
  extends SupportsRealTimeRead[InternalRow] {

  // Short enough that a cut is not felt, long enough that an idle source costs no CPU.
  private val sliceMs = 20L
  private val life = Lives.current
  // The replay source times its own waits. Of any other nobody knows whether a call will wait, so each is timed.
  private val timed = life != null && !real.isInstanceOf[ReplayReader]

  override def next(): Boolean = real.next()
  override def get(): InternalRow = real.get()
  override def getOffset: PartitionOffset = real.getOffset
  override def close(): Unit = real.close()

  override def nextWithTimeout(timeoutMs: JLong): RecordStatus =
    nextWithTimeout(System.currentTimeMillis(), timeoutMs)

  override def nextWithTimeout(startMs: JLong, timeoutMs: JLong): RecordStatus = {
    var now = startMs.longValue
    val end = now + timeoutMs.longValue
    while (now < end && cut.epoch < epoch) {
      if (timed) life.meter.idleBegins()
      val status = real.nextWithTimeout(now, math.min(sliceMs, end - now))
      if (timed) life.meter.idleEnds()
      if (status.hasRecord) {
        if (life != null) life.rowsRead += 1
        return status
      }
      now = System.currentTimeMillis()
    }
    RecordStatus.newStatusWithoutArrivalTime(false)
  }
}
