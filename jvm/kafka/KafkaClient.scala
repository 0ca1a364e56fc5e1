package org.apache.spark.barograph.kafka

import java.lang.reflect.InvocationTargetException
import java.time.Duration
import java.util.{ArrayList => JArrayList, Collection => JCollection, HashMap => JHashMap, List => JList, Map => JMap}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

/**
 * A Kafka consumer of the application's own library, which is not on the plug-in's compile path, so it is called by
 * reflection. It reads nothing and belongs to no group; it only asks how many partitions there are and where they end,
 * by the isolation level of the query: with read_committed up to the first open transaction.
 */
final class KafkaClient private (consumer: AnyRef) extends EndOffsetClient {
  private val endOffsets = consumer.getClass.getMethod("endOffsets", classOf[JCollection[_]], classOf[Duration])
  private val partitionsFor = consumer.getClass.getMethod("partitionsFor", classOf[String], classOf[Duration])
  private val closing = consumer.getClass.getMethod("close", classOf[Duration])

  def ends(partitions: Seq[AnyRef]): Map[AnyRef, Long] = KafkaClient.call {
    val found = endOffsets.invoke(consumer, new JArrayList(partitions.asJava), KafkaClient.Patience)
    found.asInstanceOf[JMap[AnyRef, java.lang.Long]].asScala.map { case (p, end) => p -> end.longValue }.toMap
  }

  def sizes(partitions: Seq[AnyRef]): Map[String, Int] = KafkaClient.call {
    val topics = partitions.map(KafkaClient.topicOf).distinct
    topics.map(t => t -> partitionsFor.invoke(consumer, t, KafkaClient.Patience).asInstanceOf[JList[_]].size).toMap
  }

  /** A broker that does not answer; the consumer goes on trying to connect by itself. */
  def isOutage(error: Throwable): Boolean = error.getClass.getName == "org.apache.kafka.common.errors.TimeoutException"

  def close(): Unit = KafkaClient.call(closing.invoke(consumer, Duration.ZERO))
}

object KafkaClient {
  private val Patience = Duration.ofSeconds(2)

  /** options: of the connector for its own consumers in executors, so that they hold for secured brokers. */
  def open(options: JMap[String, AnyRef], loader: ClassLoader): KafkaClient = {
    val settings = new JHashMap(authenticated(options, loader))
    // A consumer's name names its metrics too, and two of the same name in one process are warned of.
    val own = Option(settings.get("client.id")).fold("barograph")(name => s"$name-barograph")
    settings.put("client.id", s"$own-${numbers.getAndIncrement()}")
    // A consumer that knows how many partitions a topic has asks no more until that is old, by default five minutes.
    settings.put(MetadataAge, Math.min(FreshMs, age(options)).toString)
    val thread = Thread.currentThread()
    val before = thread.getContextClassLoader
    // Kafka looks for deserializers and login modules by the thread's loader.
    thread.setContextClassLoader(loader)
    try call {
      val consumer = loader.loadClass("org.apache.kafka.clients.consumer.KafkaConsumer")
      new KafkaClient(consumer.getConstructor(classOf[JMap[_, _]]).newInstance(settings).asInstanceOf[AnyRef])
    } finally thread.setContextClassLoader(before)
  }

  private val MetadataAge = "metadata.max.age.ms"
  private val FreshMs = 2500L // half as long as an asker waits, so that this adds little
  private def age(options: JMap[String, AnyRef]): Long =
    Option(options.get(MetadataAge)).flatMap(_.toString.trim.toLongOption).getOrElse(FreshMs)

  /** partition: a TopicPartition of Kafka. */
  private[kafka] def topicOf(partition: AnyRef): String =
    call(partition.getClass.getMethod("topic").invoke(partition).asInstanceOf[String])

  private val numbers = new AtomicInteger(1)

  /** With the delegation token of the application, if there is one: the connector adds it in the same way. */
  private def authenticated(options: JMap[String, AnyRef], loader: ClassLoader): JMap[String, AnyRef] = {
    val updater: Option[Class[_]] =
      try Some(loader.loadClass("org.apache.spark.kafka010.KafkaConfigUpdater"))
      catch { case _: ClassNotFoundException => None }
    updater.fold(options) { found =>
      call {
        val made = found.getConstructor(classOf[String], classOf[Map[_, _]])
          .newInstance("executor", options.asScala.toMap).asInstanceOf[AnyRef]
        found.getMethod("setAuthenticationConfigIfNeeded").invoke(made)
        found.getMethod("build").invoke(made).asInstanceOf[JMap[String, AnyRef]]
      }
    }
  }

  private def call[T](reflected: => T): T =
    try reflected catch { case e: InvocationTargetException if e.getCause != null => throw e.getCause }
}
