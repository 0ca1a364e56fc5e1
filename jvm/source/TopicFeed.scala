package org.apache.spark.barograph.source

import java.io.{BufferedReader, FileInputStream, InputStreamReader}
import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Collection => JCollection, HashMap => JHashMap, List => JList, Map => JMap, Optional, Properties}
import java.util.concurrent.{Future => JFuture, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * A program that writes the rows of a load into a topic, each when it is due: row (partition, k) becomes the record at
 * offset k of that partition, its time is when it was due, its value the line or number as text. Each is written once,
 * also if a broker is away for a while (an idempotent producer), so what is in the topic is known beforehand.
 *
 * Its argument is a file of properties: topic, replay.NAME for the options of the replay source, kafka.NAME for
 * clients. It makes the topic, prints "ready", reads when the load starts from its input (milliseconds since 1970),
 * writes, prints "caught up" once all rows that were due by then are in the topic, and "done" when all rows are. It
 * ends when its input ends. What goes wrong is one line on its standard error.
 */
object TopicFeed {
  private val PatienceS = 30L
  // Longer than any outage that a run waits for: a row that is settings up would be missing in the topic.
  private val OutageMs = 1800000

  def main(args: Array[String]): Unit = {
    val code = try { run(read(args(0))); 0 } catch {
      case NonFatal(e) =>
        System.err.println(s"feed: ${words(e)}")
        1
    }
    Runtime.getRuntime.halt(code) // a producer that cannot deliver would wait for ever
  }

  private def read(path: String): Map[String, String] = {
    val found = new Properties
    val file = new FileInputStream(path)
    try found.load(new InputStreamReader(file, UTF_8)) finally file.close()
    found.asScala.toMap
  }

  private def under(prefix: String, settings: Map[String, String]): JMap[String, String] =
    settings.collect { case (name, value) if name.startsWith(prefix) => name.stripPrefix(prefix) -> value }.asJava

  private def run(settings: Map[String, String]): Unit = {
    val topic = settings("topic")
    val replay = Replay.of(new CaseInsensitiveStringMap(under("replay.", settings)))
    val producer = reflected {
      makeTopic(topic, replay.partitions, under("kafka.", settings))
      new Producer(topic, under("kafka.", settings))
    }
    println("ready")
    val input = new BufferedReader(new InputStreamReader(System.in, UTF_8))
    val startMs = Option(input.readLine()).map(_.trim.toLong).getOrElse(throw new IllegalStateException("no start"))
    val end = new Thread(() => { while (input.readLine() != null) (); Runtime.getRuntime.halt(1) }, "end")
    end.setDaemon(true)
    end.start()
    reflected { write(replay, startMs, producer) }
    println("done")
  }

  /** In the order of all rows, in which they also fall due. */
  private def write(replay: Replay, startMs: Long, producer: Producer): Unit = {
    val lines = new Lines(replay.lines)
    val buffer = lines.newBuffer()
    val count = replay.partitions
    val seeds = Array.tabulate(count)(lines.seedOf)
    val ends = Array.tabulate(count)(replay.end)
    var row = 0L
    var ended = 0
    var isBehind = true
    while (ended < count) {
      val (partition, k) = ((row % count).toInt, row / count)
      if (k < ends(partition)) {
        ended = 0
        val dueMs = startMs + replay.load.dueMs(partition, k, count)
        var leftMs = dueMs - System.currentTimeMillis()
        if (leftMs > 0L && isBehind) {
          producer.flush()
          isBehind = false
          println("caught up")
          leftMs = dueMs - System.currentTimeMillis()
        }
        while (leftMs > 0L) {
          producer.check()
          Thread.sleep(Math.min(leftMs, 200L))
          leftMs = dueMs - System.currentTimeMillis()
        }
        val value =
          if (replay.text) java.util.Arrays.copyOf(buffer, lines.write(seeds(partition), k, buffer))
          else lines.number(seeds(partition), k).toString.getBytes(UTF_8)
        producer.send(partition, dueMs, value)
      } else ended += 1
      row += 1
    }
    producer.flush()
  }

  private def makeTopic(topic: String, partitions: Int, options: JMap[String, String]): Unit = {
    val adminClass = Class.forName("org.apache.kafka.clients.admin.Admin")
    val admin = adminClass.getMethod("create", classOf[JMap[_, _]]).invoke(null, new JHashMap[String, AnyRef](options))
    try {
      val wanted = Class.forName("org.apache.kafka.clients.admin.NewTopic")
        .getConstructor(classOf[String], classOf[Optional[_]], classOf[Optional[_]])
        .newInstance(topic, Optional.of(Int.box(partitions)), Optional.empty[java.lang.Short]()).asInstanceOf[AnyRef]
      val made = adminClass.getMethod("createTopics", classOf[JCollection[_]]).invoke(admin, JList.of(wanted))
      made.getClass.getMethod("all").invoke(made).asInstanceOf[JFuture[_]].get(PatienceS, TimeUnit.SECONDS)
    } finally adminClass.getMethod("close").invoke(admin)
  }

  /** Kafka's library is not on the compile path; it is the application's. */
  private final class Producer(topic: String, options: JMap[String, String]) {
    @volatile private var failure: Throwable = _
    private val producerClass = Class.forName("org.apache.kafka.clients.producer.KafkaProducer")
    private val recordClass = Class.forName("org.apache.kafka.clients.producer.ProducerRecord")
    private val callbackClass = Class.forName("org.apache.kafka.clients.producer.Callback")
    private val recordOf = recordClass.getConstructor(
      classOf[String], classOf[Integer], classOf[java.lang.Long], classOf[AnyRef], classOf[AnyRef])
    private val sending = producerClass.getMethod("send", recordClass, callbackClass)
    private val callback = Proxy.newProxyInstance(callbackClass.getClassLoader, Array[Class[_]](callbackClass),
      new InvocationHandler {
        def invoke(self: AnyRef, method: Method, arguments: Array[AnyRef]): AnyRef = {
          if (method.getName == "onCompletion" && arguments(1) != null) failure = arguments(1).asInstanceOf[Throwable]
          null
        }
      })
    private val producer = {
      val settings = new JHashMap[String, AnyRef](options)
      val bytes = "org.apache.kafka.common.serialization.ByteArraySerializer"
      settings.putAll(JMap.of[String, AnyRef](
        "key.serializer", bytes, "value.serializer", bytes, "acks", "all", "enable.idempotence", "true",
        "linger.ms", "0", "delivery.timeout.ms", Int.box(OutageMs), "max.block.ms", Int.box(OutageMs),
        "request.timeout.ms", Int.box(5000)))
      producerClass.getConstructor(classOf[JMap[_, _]]).newInstance(settings).asInstanceOf[AnyRef]
    }

    def check(): Unit = if (failure != null) throw failure

    def send(partition: Int, timeMs: Long, value: Array[Byte]): Unit = {
      check()
      val record = recordOf.newInstance(topic, Int.box(partition), Long.box(timeMs), null, value).asInstanceOf[AnyRef]
      sending.invoke(producer, record, callback)
    }

    /** Until all that was sent is in the topic. */
    def flush(): Unit = {
      producerClass.getMethod("flush").invoke(producer)
      check()
    }
  }

  private def reflected[T](call: => T): T =
    try call catch { case e: InvocationTargetException if e.getCause != null => throw e.getCause }

  /** The innermost cause: a future's error only wraps it. */
  private def words(error: Throwable): String = {
    val cause = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq.last
    s"${cause.getClass.getSimpleName}: ${String.valueOf(cause.getMessage).linesIterator.nextOption().mkString}"
  }
}
