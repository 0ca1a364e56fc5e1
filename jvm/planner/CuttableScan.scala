package org.apache.spark.barograph.planner

import java.lang.{Long => JLong}

import org.apache.spark.TaskContext
import org.apache.spark.barograph.kafka.KafkaInput
import org.apache.spark.barograph.orders.{Cuts, Gates}
import org.apache.spark.barograph.telemetry.{DueRows, Lives, TimesItsWaits}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.apache.spark.sql.execution.datasources.v2.RealTimeStreamScanExec

/**
 * Spark's real-time scan, with three additions: an order can end its epoch, the epoch can be longer or shorter than its
 * trigger says, and its readers can rest. ownMs: the trigger's length; the scan's own length is far longer, and the
 * readers end it in time.
 */
class CuttableScan(
    output: Seq[Attribute],
    @transient scan: Scan,
    @transient stream: MicroBatchStream,
    @transient start: Offset,
    batchDurationMs: Long,
    ownMs: Long,
    of: Marks)
  extends RealTimeStreamScanExec(output, scan, stream, start, batchDurationMs) {

  override lazy val readerFactory: PartitionReaderFactory =
    new CuttableFactory(stream.createReaderFactory(), of, batchDurationMs, ownMs, RecordTime.columnOf(stream, output))

  // Spark copies plan nodes by the arguments of the case class, and this class has more.
  override protected def otherCopyArgs: Seq[AnyRef] = Seq(Long.box(ownMs), of)
}

object CuttableScan {
  /**
   * Room for epochs that are longer than their trigger says. It also makes the scan differ from Spark's: Spark takes
   * scans with the same stream and duration as equal, and does not replace a node by an equal one.
   */
  val RoomMs = 86400000L
}

class CuttableFactory(real: PartitionReaderFactory, of: Marks, scanMs: Long, ownMs: Long, recordTime: TimeColumn)
  extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val reader = real.createReader(partition).asInstanceOf[SupportsRealTimeRead[InternalRow]]
    val life = Lives.current
    if (life != null) {
      life.meter.load = partition match {
        case load: DueRows => load
        case other => KafkaInput.of(other, reader).orNull
      }
      reader match { case waiting: TimesItsWaits => waiting.meter = life.meter; case _ => }
    }
    new CuttableReader(reader, Cuts.of(of.runId), Gates.of(of.topology), of.epoch, scanMs, ownMs, recordTime)
  }
}

/**
 * Ends its input once its epoch is cut or has lasted for its present length. A cut names its epoch, so a late order
 * cuts no other epoch. While its topology's gate is shut it reads nothing from the source.
 */
class CuttableReader(
    real: SupportsRealTimeRead[InternalRow], cut: Cuts.Line, gate: Gates.Gate, epoch: Long, scanMs: Long, ownMs: Long,
    recordTime: TimeColumn)
  extends SupportsRealTimeRead[InternalRow] {

  // Short enough that a cut is not delayed, long enough that an idle source costs no CPU.
  private val sliceMs = 20L
  private var restsSinceNs = 0L
  private def restMs: Long = CuttableReader.restMs(System.nanoTime() - restsSinceNs)
  private val life = Lives.current
  private val task = TaskContext.get()
  if (life != null) life.reads = true
  // It is unknown whether a call of any other reader will wait, so each is timed.
  private val timed = life != null && !real.isInstanceOf[TimesItsWaits]
  /** When its epoch began, on the monotonic clock: the wall clock may be set while it lasts. */
  private var begunNs = 0L
  private var hasBegun = false

  override def next(): Boolean = real.next()
  override def get(): InternalRow = {
    val row = real.get()
    if (life != null && recordTime.known) life.meter.recordMs = RecordTime.of(row, recordTime, life.meter.recordMs)
    row
  }
  override def getOffset: PartitionOffset = real.getOffset
  override def currentMetricsValues(): Array[CustomTaskMetric] = real.currentMetricsValues()
  override def close(): Unit =
    try real.close() finally if (life != null && life.meter.load != null) life.meter.load.close()

  override def nextWithTimeout(timeoutMs: JLong): RecordStatus =
    nextWithTimeout(System.currentTimeMillis(), timeoutMs)

  override def nextWithTimeout(startMs: JLong, timeoutMs: JLong): RecordStatus = {
    var now = startMs.longValue
    if (!hasBegun) {
      // The scan's end less its length is when the epoch began, on the driver's clock, which Spark uses too. That may
      // be later than now, where the clock was set back or this host's is behind; no epoch begins after its reader.
      begunNs = System.nanoTime() - math.max(0L, scanMs - timeoutMs.longValue) * 1000000L
      hasBegun = true
    }
    var leftNs = leftOfEpochNs()
    while (leftNs > 0L && cut.epoch < epoch) {
      val waitNs = if (life == null) 0L else life.allowance.waitNs()
      if (gate.shut) rest()
      else if (waitNs > 0L) hold(waitNs)
      else {
        val sinceNs = if (timed) life.meter.idleBegins() else 0L
        val status = real.nextWithTimeout(now, math.min(sliceMs, math.max(1L, leftNs / 1000000L)))
        if (timed) {
          val ns = System.nanoTime() - sinceNs
          life.meter.callEnds(ns, waited(ns, status.hasRecord))
        }
        if (status.hasRecord) {
          if (life != null) {
            life.rowsRead.increment()
            life.meter.recordMs = RecordTime.of(status)
          }
          return status
        }
      }
      now = System.currentTimeMillis()
      leftNs = leftOfEpochNs()
    }
    if (life != null) life.allowance.ends()
    RecordStatus.newStatusWithoutArrivalTime(false)
  }

  /**
   * Whether a call waited for rows: it found none, or it took long and, by the last figure, no row was there before.
   */
  private def waited(ns: Long, found: Boolean): Boolean = {
    val load = life.meter.load
    if (load != null) load.called(found, ns)
    !found || ns >= CuttableReader.ShortNs && (load == null || load.hadNone(life.rowsRead.value))
  }

  /** A thread that is interrupted would not wait: it would use CPU all the time, and owe ever more for that. */
  private def hold(ns: Long): Unit = {
    life.allowance.rest(ns)
    if (task != null) task.killTaskIfInterrupted()
    if (Thread.interrupted()) throw new InterruptedException("while its CPU limit held it back")
  }

  private def leftOfEpochNs(): Long = {
    val wanted = gate.lengthMs
    begunNs + (if (wanted > 0L) math.min(wanted, scanMs) else ownMs) * 1000000L - System.nanoTime()
  }

  /** All earlier rows have been handed on by now: the next row is requested only after that. */
  private def rest(): Unit = {
    restsSinceNs = System.nanoTime()
    if (life != null) { life.meter.idleBegins(); life.rests = true }
    try while (gate.shut && cut.epoch < epoch && leftOfEpochNs() > 0L) Thread.sleep(restMs)
    finally if (life != null) { life.rests = false; life.meter.idleEnds() }
  }
}

object CuttableReader {
  private val ShortNs = 1000000L // a call that takes less works: it takes a row that was fetched before

  /** For how long a reader sleeps that has rested for so long: a tenth of that, so that short rests are hardly longer
   *  for it, and long ones, which may last for hours, cost little CPU. */
  private[planner] def restMs(restedNs: Long): Long = math.min(20L, math.max(2L, restedNs / 10000000L))
}
