package org.apache.spark.barograph

import scala.annotation.nowarn

import org.apache.spark.TaskContext
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.shuffle.{Credit, Grants, MeteredQueue, MeteredReader, MeteredRoom, MeteredWriter}
import org.apache.spark.barograph.telemetry.{Counters, Lives}
import org.apache.spark.shuffle._
import org.apache.spark.shuffle.streaming._
import org.apache.spark.util.ErrorNotifier

/**
 * Spark's streaming shuffle with meters: enabled by spark.shuffle.manager.incremental. Rows are counted one by one,
 * which costs an addition each. Waiting is timed where Spark waits, in the reader's queue and for the writer's buffers,
 * so a clock is read once per wait and not per row. Rows in flight are bounded by [[Credit]]. Tasks that are not
 * instances of a topology get Spark's own reader and writer.
 */
// Spark declares the types of the metrics private, so no class outside Spark's packages could override these methods.
@nowarn("msg=may be unable to override")
class MeteredShuffleManager extends StreamingShuffleManager {
  override def getWriter[K, V](
      handle: ShuffleHandle, mapId: Long, context: TaskContext, metrics: ShuffleWriteMetricsReporter)
      : ShuffleWriter[K, V] = {
    val life = Lives.current
    if (life == null) super.getWriter[K, V](handle, mapId, context, metrics)
    else {
      val shuffle = handle.asInstanceOf[StreamingShuffleHandle[K, V, _]]
      val partitioner = shuffle.dependency.partitioner
      life.meter.sent = new Counters(partitioner.numPartitions)
      val errors = new ErrorNotifier()
      val credit =
        if (Credit.targetNs == 0L) null
        else Credit.of(shuffle.shuffleId, partitioner.numPartitions, context, errors, life.meter)
      // By partition, as in Spark's older shuffle, and not by task: so a receiver can identify its senders.
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
    if (life == null) {
      super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics)
    } else {
      val targetNs = Credit.targetNs
      val grants = if (targetNs > 0) new Grants(context.partitionId(), targetNs, life.meter) else null
      new MeteredReader[K, C](handle, context, new MeteredQueue(life.meter, grants), grants, life.meter)
    }
  }
}
