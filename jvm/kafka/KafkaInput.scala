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
 * records and marks of transactions count as rows.
 */
final class KafkaInput(name: String, figure: EndOffset, leave: () => Unit, offset: () => Long) extends DueRows {
  def load: Long = name.hashCode & 0x7fffffffL
  // What was in the topic before it was first looked at did not arrive now; it is backlog.
  def start: Long = figure.first
  def position(read: Long): Long = offset()
  def dueRows(nowMs: Long): Long = if (figure.end < 0L || sinceMs > DueRows.ForgottenMs) -1L else figure.end
  override def ageMs: Long = if (figure.end < 0L) 0L else Math.max(0L, sinceMs - DueRows.UsualMs)
  override def close(): Unit = leave()

  private def sinceMs: Long = (System.nanoTime() - figure.atNs) / 1000000L
}

object KafkaInput extends Logging {
  private val PartitionClass = "org.apache.spark.sql.kafka010.KafkaBatchInputPartition"

  /** None if it is no partition of a topic, or of a connector that is built in another way. */
  def of(partition: InputPartition, reader: SupportsRealTimeRead[_]): Option[KafkaInput] =
    if (partition.getClass.getName != PartitionClass) None
    else try {
      val topicPartition = get(get(partition, "offsetRange"), "topicPartition")
      val options = get(partition, "executorKafkaParams").asInstanceOf[JMap[String, AnyRef]]
      val next = method(reader.getOffset, "partitionOffset")
      // Read by the reporter's thread while the reader moves on: as of a moment ago, as every figure is.
      def offset(): Long = next.invoke(reader.getOffset).asInstanceOf[Long]
      offset()
      val (figure, leave) = EndOffsets.watch(options, topicPartition)
      Some(new KafkaInput(topicPartition.toString, figure, leave, () => offset()))
    } catch {
      case NonFatal(e) =>
        logWarning("this Kafka connector is not known, so the backlog of its topics is not known either", e)
        None
    }

  private def get(of: AnyRef, name: String): AnyRef = method(of, name).invoke(of)

  private def method(of: AnyRef, name: String): Method = {
    val found = of.getClass.getMethod(name)
    found.setAccessible(true)
    found
  }
}
