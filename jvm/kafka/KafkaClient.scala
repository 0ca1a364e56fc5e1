package org.apache.spark.barograph.kafka

import java.lang.reflect.InvocationTargetException
import java.time.Duration
import java.util.{ArrayList => JArrayList, Collection => JCollection, HashMap => JHashMap, Map => JMap}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

/**
 * A Kafka consumer of the application's own library, which is not on the plug-in's compile path, so it is called by
 * reflection. It reads nothing and belongs to no group; it only asks where partitions end, by the isolation level of
 * the query: with read_committed up to the first open transaction.
 */
final class KafkaClient private (consumer: AnyRef) extends EndOffsetClient {
  private val endOffsets = consumer.getClass.getMethod("endOffsets", classOf[JCollection[_]], classOf[Duration])
  private val closing = consumer.getClass.getMethod("close", classOf[Duration])

  def ends(partitions: Seq[AnyRef]): Map[AnyRef, Long] = KafkaClient.call {
    val found = endOffsets.invoke(consumer, new JArrayList(partitions.asJava), KafkaClient.Patience)
    found.asInstanceOf[JMap[AnyRef, java.lang.Long]].asScala.map { case (p, end) => p -> end.longValue }.toMap
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
    val thread = Thread.currentThread()
    val before = thread.getContextClassLoader
    // Kafka looks for deserializers and login modules by the thread's loader.
    thread.setContextClassLoader(loader)
    try call {
      val consumer = loader.loadClass("org.apache.kafka.clients.consumer.KafkaConsumer")
      new KafkaClient(consumer.getConstructor(classOf[JMap[_, _]]).newInstance(settings).asInstanceOf[AnyRef])
    } finally thread.setContextClassLoader(before)
  }

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
