package org.apache.spark.barograph.shuffle

import java.util.concurrent.{Semaphore, TimeUnit}
import java.util.concurrent.locks.LockSupport

import org.apache.spark.{Partitioner, SparkException, TaskContext}
import org.apache.spark.barograph.enforce.Allowance
import org.apache.spark.barograph.telemetry.Meter
import org.apache.spark.network.client.TransportClient
import org.apache.spark.network.shuffle.streaming.{DataMessage, StreamingShuffleMessage, TerminationControlMessage}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle._

// A parameter that is a field is set before the constructor of the superclass runs, which starts a thread that uses it.
class MeteredReader[K, C](
    handle: ShuffleHandle, task: TaskContext, queue: MeteredQueue, key: Array[Byte], grants: Grants, meter: Meter,
    allowance: Allowance)
  extends ProvenReader[K, C](handle, task, queue, key) {

  override protected def createClient(mapId: Int, remoteHost: String, remotePort: Int): TransportClient = {
    val client = super.createClient(mapId, remoteHost, remotePort)
    if (grants != null) grants.connected(mapId, client)
    client
  }

  override def read(): Iterator[Product2[K, C]] = {
    val rows = super.read()
    new Iterator[Product2[K, C]] {
      override def hasNext: Boolean = try rows.hasNext catch { case lost: SparkException => throw afterTheCause(lost) }
      override def next(): Product2[K, C] = {
        allowance.await(task)
        meter.executed.increment()
        val row = try rows.next() catch { case lost: SparkException => throw afterTheCause(lost) }
        if (grants != null) grants.took()
        // For each row: an instance that reads a union has several readers.
        meter.recordMs = queue.times.next()
        row
      }
    }
  }

  /**
   * A writer that fails closes its connections before its task reports why, and the first report to reach the driver is
   * the one that the query dies of. So a task that has only lost its connection reports that a moment later.
   */
  private def afterTheCause(lost: SparkException): SparkException = {
    val untilNs = System.nanoTime() + MeteredReader.AfterTheCauseNs
    while (!task.isInterrupted() && System.nanoTime() < untilNs) LockSupport.parkNanos(MeteredReader.LookNs)
    lost
  }
}

object MeteredReader {
  /** Longer than a report takes; short against the seconds that a restart takes. */
  private val AfterTheCauseNs = 150000000L
  private val LookNs = 5000000L
}

/**
 * Messages from other instances that wait for this one. A message holds many rows; the clock is read only if there is
 * none.
 */
final class MeteredQueue(meter: Meter, grants: Grants, allowance: Allowance) extends ProvenQueue {
  /** The record times of the rows of the message that was taken last. */
  val times = new TimeRuns

  /** A message of no rows asks for credit. */
  override protected def accept(message: StreamingShuffleMessage): Unit = message match {
    case ask: DataMessage if ask.dataSize == 0 && grants != null =>
      ask.release()
      grants.asks(ask.shuffleWriterId)
    case _ => super.accept(message)
  }

  override def poll(timeout: Long, unit: TimeUnit): StreamingShuffleMessage = {
    val message = takeOrWait(timeout, unit)
    message match {
      case rows: DataMessage =>
        times.read(rows.data, rows.dataSize)
        if (grants != null) grants.readingFrom(rows.shuffleWriterId)
      case end: TerminationControlMessage =>
        allowance.ends()
        if (grants != null) grants.finished(end.shuffleWriterId)
      case _ =>
    }
    message
  }

  private def takeOrWait(timeout: Long, unit: TimeUnit): StreamingShuffleMessage = {
    val ready = poll()
    if (ready != null) ready
    else {
      meter.idleBegins()
      try {
        if (grants != null) grants.ranDry()
        val late = super.poll(timeout, unit)
        if (late == null && grants != null) grants.stillDry()
        late
      } finally meter.idleEnds()
    }
  }
}

/** The writer's room for buffers in flight. A buffer holds many rows; the clock is read only if there is no room. */
final class MeteredRoom(permits: Int, meter: Meter) extends Semaphore(permits) {
  override def tryAcquire(permits: Int, timeout: Long, unit: TimeUnit): Boolean =
    tryAcquire(permits) || {
      meter.blockedBegins()
      try super.tryAcquire(permits, timeout, unit) finally meter.blockedEnds()
    }
}

class MeteredWriter[K, V](
    real: ShuffleWriter[K, V], partitioner: Partitioner, credit: Credit, meter: Meter, allowance: Allowance,
    task: TaskContext)
  extends ShuffleWriter[K, V] {
  override def write(rows: Iterator[Product2[K, V]]): Unit = {
    var lastNs = 0L
    val sent = meter.sent
    real.write(new Iterator[Product2[K, V]] {
      override def hasNext: Boolean = rows.hasNext || { if (lastNs == 0L) lastNs = System.nanoTime(); false }
      override def next(): Product2[K, V] = {
        // A row that comes in may cause any number of rows that go out.
        allowance.await(task)
        val row = rows.next()
        val receiver = partitioner.getPartition(row._1)
        if (credit != null) credit.await(receiver, sent.own(receiver))
        sent.increment(receiver)
        row
      }
    })
    if (credit != null) credit.awaitEnough()
    // After its last row a writer waits until its receivers have taken all rows.
    if (lastNs != 0L) meter.blockedSince(lastNs)
  }

  override def stop(success: Boolean): Option[MapStatus] = real.stop(success)
  override def getPartitionLengths(): Array[Long] = real.getPartitionLengths()
}
