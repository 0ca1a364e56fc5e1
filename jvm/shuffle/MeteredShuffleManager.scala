package org.apache.spark.barograph

import scala.annotation.nowarn

import org.apache.spark.TaskContext
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.shuffle._
import org.apache.spark.barograph.telemetry.{Counters, Lives}
import org.apache.spark.shuffle._
import org.apache.spark.shuffle.streaming._
import org.apache.spark.shuffle.streaming.barograph.StreamingInternals
import org.apache.spark.util.ErrorNotifier

/**
 * Spark's streaming shuffle with meters: enabled by spark.shuffle.manager.incremental. Rows are counted one by one,
 * which costs an addition each. Waiting is timed where Spark waits, in the reader's queue and for the writer's buffers,
 * so a clock is read once per wait and not per row. Rows in flight are bounded by [[Credit]]. Tasks that are not
 * instances of a topology are not metered. Both ends of every connection prove themselves ([[Guard]],
 * [[ProvenReader]]).
 */
// Spark declares the types of the metrics private, so no class outside Spark's packages could override these methods.
@nowarn("msg=may be unable to override")
class MeteredShuffleManager extends StreamingShuffleManager {
  override def getWriter[K, V](
      handle: ShuffleHandle, mapId: Long, context: TaskContext, metrics: ShuffleWriteMetricsReporter)
      : ShuffleWriter[K, V] = {
    val shuffle = handle.asInstanceOf[StreamingShuffleHandle[K, V, _]]
    val partitioner = shuffle.dependency.partitioner
    val receivers = partitioner.numPartitions
    val life = Lives.current
    val errors = new ErrorNotifier()
    val credit =
      if (life == null || Credit.targetNs == 0L) null
      else Credit.of(shuffle.shuffleId, receivers, context, errors, ShuffleKey.get, life.meter)
    lazy val guard: Guard =
      if (credit != null) credit
      else new Guard(
        (receiver, last) => StreamingInternals.acknowledged(real, receiver, last),
        shuffle.shuffleId, context.partitionId(), receivers, context, errors, ShuffleKey.get)
    // By partition, as in Spark's older shuffle, and not by task: so a receiver can identify its senders.
    lazy val real: StreamingShuffleWriter[K, V] =
      new StreamingShuffleWriter[K, V](shuffle, context.partitionId(), context, Some(guard), errors)
    if (credit != null) credit.writer = real
    if (life == null) real
    else {
      life.meter.sent = new Counters(receivers)
      StreamingInternals.sendTimes(real, life.meter)
      SparkInternals.replaceRoom(real, room => new MeteredRoom(room.availablePermits(), life.meter))
      new MeteredWriter[K, V](real, partitioner, credit, life.meter, life.allowance, context)
    }
  }

  override def getReader[K, C](
      handle: ShuffleHandle, startMapIndex: Int, endMapIndex: Int, startPartition: Int, endPartition: Int,
      context: TaskContext, metrics: ShuffleReadMetricsReporter): ShuffleReader[K, C] = {
    val life = Lives.current
    if (life == null) new ProvenReader[K, C](handle, context, new ProvenQueue, ShuffleKey.get)
    else {
      val targetNs = Credit.targetNs
      val grants = if (targetNs > 0) new Grants(context.partitionId(), targetNs, life.meter) else null
      val queue = new MeteredQueue(life.meter, grants, life.allowance)
      new MeteredReader[K, C](handle, context, queue, ShuffleKey.get, grants, life.meter, life.allowance)
    }
  }
}
