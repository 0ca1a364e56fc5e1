package org.apache.spark.barograph.kafka

import java.lang.reflect.Method
import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.spark.barograph.telemetry.DueRows
import org.apache.spark.internal.Logging
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead

/**
 * What an instance reads of a topic: due is what is in the partition, read or not. Rows are offsets here, so compacted
 * records and marks of transactions count as rows, but not at the end of the partition once calls have found none there
 * for quietMs.
 */
final class KafkaInput(
    name: String, figure: EndOffset, leave: () => Unit, offset: () => Long,
    quietMs: Long = RowlessEnd.quietMs(fetchWait = null)) extends DueRows {
  // Only the reader's thread uses these: where the partition ended when the last call found none, or -1 if that found a
  // row; and how many offsets it had left then.
  private var emptyEnd = -1L
  private var left = 0L

  def load: Long = name.hashCode & 0x7fffffffL
  // What was in the topic before it was first looked at did not arrive now; it is backlog.
  def start: Long = figure.first
  def position(read: Long): Long = figure.rowless.past(offset())
  def dueRows(nowMs: Long): Long = if (figure.end < 0L || sinceMs > DueRows.ForgottenMs) -1L else figure.end
  override def ageMs: Long = if (figure.end < 0L) 0L else Math.max(0L, sinceMs - DueRows.UsualMs)
  override def close(): Unit = leave()

  override def called(found: Boolean, ns: Long): Unit =
    if (!found) foundNone(ns) else if (emptyEnd >= 0L) foundAgain()

  private def foundNone(ns: Long): Unit = {
    val (end, at) = (figure.end, offset())
    emptyEnd = end
    left = Math.max(0L, end - at)
    // A broker that does not answer gives no rows either.
    if (sinceMs > KafkaInput.FreshMs || end <= position(0L)) figure.seemsRowless = RowlessEnd.none
    else {
      val seems = figure.seemsRowless
      if (seems.from != at) figure.seemsRowless = RowlessEnd(at, end)
      else if (seems.emptyNs + ns < quietMs * 1000000L) figure.seemsRowless = seems.copy(emptyNs = seems.emptyNs + ns)
      else {
        figure.rowless = seems
        figure.seemsRowless = RowlessEnd.none
      }
    }
  }

  private def foundAgain(): Unit = {
    val row = offset() - 1L
    if (row < emptyEnd) left = 0L // there were rows, and the broker was slow
    if (figure.rowless.has(row)) figure.rowless = RowlessEnd.none
    figure.seemsRowless = RowlessEnd.none
    emptyEnd = -1L
  }

  /** What was left when the last call found none is no row: at a steady rate every transaction ends with a mark. */
  override def hadNone(read: Long): Boolean = dueRows(System.currentTimeMillis()) - left <= position(read)

  private def sinceMs: Long = figure.ageMs(System.nanoTime())
}

object KafkaInput extends Logging {
  /** A figure that is older may be of a broker that is away. */
  private val FreshMs = 1000L
  private val PartitionClass = "org.apache.spark.sql.kafka010.KafkaBatchInputPartition"

  /** None if it is no partition of a topic, or of a connector that is built in another way. */
  def of(partition: InputPartition, reader: SupportsRealTimeRead[_]): Option[KafkaInput] =
    if (!isOfTopic(partition)) None
    else try {
      val (topicPartition, options) = read(partition)
      val next = method(reader.getOffset, "partitionOffset")
      // Read by the reporter's thread while the reader moves on: as of a moment ago, as every figure is.
      def offset(): Long = next.invoke(reader.getOffset).asInstanceOf[Long]
      offset()
      val (figure, leave) = EndOffsets.watch(options, topicPartition)
      val quietMs = RowlessEnd.quietMs(options.get("fetch.max.wait.ms"))
      Some(new KafkaInput(topicPartition.toString, figure, leave, () => offset(), quietMs))
    } catch {
      case NonFatal(e) =>
        logWarning("this Kafka connector is not known, so the backlog of its topics is not known either", e)
        None
    }

  /** How many partitions of each topic are read, of what a scan reads; empty if it cannot be told. */
  def topicsOf(partitions: Seq[InputPartition]): Map[Topic, Int] =
    try {
      val found = partitions.filter(isOfTopic).map(read).map { case (topicPartition, options) =>
        Topic(brokersOf(options), KafkaClient.topicOf(topicPartition)) -> topicPartition
      }
      // Of one partition there may be several parts, and a query may read a topic twice.
      found.distinct.groupMapReduce { case (topic, _) => topic }(_ => 1)(_ + _)
    } catch {
      case NonFatal(e) =>
        logDebug("it is not known which topics are read", e)
        Map.empty
    }

  private[kafka] def brokersOf(options: JMap[String, AnyRef]): String = String.valueOf(options.get("bootstrap.servers"))

  private def isOfTopic(partition: InputPartition): Boolean = partition.getClass.getName == PartitionClass

  /** The partition as Kafka names it, and the options of its reader. */
  private def read(partition: InputPartition): (AnyRef, JMap[String, AnyRef]) =
    (get(get(partition, "offsetRange"), "topicPartition"),
      get(partition, "executorKafkaParams").asInstanceOf[JMap[String, AnyRef]])

  private def get(of: AnyRef, name: String): AnyRef = method(of, name).invoke(of)

  private def method(of: AnyRef, name: String): Method = {
    val found = of.getClass.getMethod(name)
    found.setAccessible(true)
    found
  }
}
