package org.apache.spark.barograph

import java.util.concurrent.{LinkedBlockingQueue, Semaphore, TimeUnit}

import org.apache.spark.{Partitioner, TaskContext}
import org.apache.spark.network.client.TransportClient
import org.apache.spark.network.shuffle.streaming.{DataMessage, StreamingShuffleMessage, TerminationControlMessage}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.shuffle._
import org.apache.spark.shuffle.streaming._
import org.apache.spark.util.ErrorNotifier

/**
 * Spark's streaming shuffle, metered: enabled by spark.shuffle.manager.incremental. Rows are counted one by one, which
 * is an addition each. Waiting is timed where Spark waits, in the reader's queue and for the writer's buffers, so a clock
 * is read once per wait and not per row. What is under way is bounded by [[Credit]]. Tasks that are no instance of a topology
 * get Spark's own reader and writer.
 */
class MeteredShuffleManager extends StreamingShuffleManager {
  override def getWriter[K, V](
      handle: ShuffleHandle, mapId: Long, context: TaskContext, metrics: ShuffleWriteMetricsReporter): ShuffleWriter[K, V] = {
    val life = Lives.current
    if (life == null) super.getWriter[K, V](handle, mapId, context, metrics)
    else {
      val shuffle = handle.asInstanceOf[StreamingShuffleHandle[K, V, _]]
      val partitioner = shuffle.dependency.partitioner
      life.meter.sent = new Array[Long](partitioner.numPartitions)
      val errors = new ErrorNotifier()
      val credit =
        if (Credit.targetNs == 0L) null
        else Credit.of(shuffle.shuffleId, partitioner.numPartitions, context, errors, life.meter)
      // By its partition, as Spark's older shuffle is registered, and not by its task: so a receiver tells its senders apart.
      val real = new StreamingShuffleWriter[K, V](shuffle, context.partitionId(), context, Option(credit), errors)
      if (credit != null) credit.writer = real
      SparkInternals.replaceRoom(real, room => new MeteredRoom(room.availablePermits(), life.meter))
      new MeteredWriter[K, V](real, partitioner, credit, life.meter)
    }
  }

  override def getReader[K, C](
      handle: ShuffleHandle, startMapIndex: Int, endMapIndex: Int, startPartition: Int, endPartition: Int,
      context: TaskContext, metrics: ShuffleReadMetricsReporter): ShuffleReader[K, C] = {
    val life = Lives.current
    if (life == null) super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics)
    else {
      val targetNs = Credit.targetNs
      val grants = if (targetNs > 0) new Grants(context.partitionId(), targetNs, life.meter) else null
      new MeteredReader[K, C](handle, context, new MeteredQueue(life.meter, grants), grants, life.meter)
    }
  }
}

// A parameter that is a field is set before the constructor of the class above runs, which starts a thread that uses it.
class MeteredReader[K, C](
    handle: ShuffleHandle,
    task: TaskContext,
    override private[spark] val messageQueue: LinkedBlockingQueue[StreamingShuffleMessage],
    grants: Grants,
    meter: Meter)
  extends StreamingShuffleReader[K, C](handle, task) {

  override protected def createClient(mapId: Int, remoteHost: String, remotePort: Int): TransportClient = {
    val client = super.createClient(mapId, remoteHost, remotePort)
    if (grants != null) grants.connected(mapId, client)
    client
  }

  override def read(): Iterator[Product2[K, C]] = {
    val rows = super.read()
    new Iterator[Product2[K, C]] {
      override def hasNext: Boolean = rows.hasNext
      override def next(): Product2[K, C] = {
        meter.executed += 1
        val row = rows.next()
        if (grants != null) grants.took()
        row
      }
    }
  }
}

/** What came from other instances and waits for this one. A message holds many rows; the clock is read only if none is there. */
final class MeteredQueue(meter: Meter, grants: Grants) extends LinkedBlockingQueue[StreamingShuffleMessage] {
  override def poll(timeout: Long, unit: TimeUnit): StreamingShuffleMessage = {
    val message = takeOrWait(timeout, unit)
    message match {
      case rows: DataMessage if grants != null => grants.readingFrom(rows.shuffleWriterId)
      case end: TerminationControlMessage if grants != null => grants.finished(end.shuffleWriterId)
      case _ =>
    }
    message
  }

  private def takeOrWait(timeout: Long, unit: TimeUnit): StreamingShuffleMessage = {
    val ready = poll()
    if (ready != null) ready
    else {
      meter.idleBegins()
      try super.poll(timeout, unit) finally meter.idleEnds()
    }
  }
}

/** The writer's room for buffers that are under way. A buffer holds many rows; the clock is read only if there is no room. */
final class MeteredRoom(permits: Int, meter: Meter) extends Semaphore(permits) {
  override def tryAcquire(permits: Int, timeout: Long, unit: TimeUnit): Boolean =
    tryAcquire(permits) || {
      meter.blockedBegins()
      try super.tryAcquire(permits, timeout, unit) finally meter.blockedEnds()
    }
}

class MeteredWriter[K, V](real: ShuffleWriter[K, V], partitioner: Partitioner, credit: Credit, meter: Meter)
  extends ShuffleWriter[K, V] {
  override def write(rows: Iterator[Product2[K, V]]): Unit = {
    var lastNs = 0L
    val sent = meter.sent
    real.write(new Iterator[Product2[K, V]] {
      override def hasNext: Boolean = rows.hasNext || { if (lastNs == 0L) lastNs = System.nanoTime(); false }
      override def next(): Product2[K, V] = {
        val row = rows.next()
        val receiver = partitioner.getPartition(row._1)
        if (credit != null) credit.await(receiver, sent(receiver))
        sent(receiver) += 1
        row
      }
    })
    if (credit != null) credit.awaitEnough()
    // After its last row a writer waits until the others have taken all of it.
    if (lastNs != 0L) meter.blockedSince(lastNs)
  }

  override def stop(success: Boolean): Option[MapStatus] = real.stop(success)
  override def getPartitionLengths(): Array[Long] = real.getPartitionLengths()
}
