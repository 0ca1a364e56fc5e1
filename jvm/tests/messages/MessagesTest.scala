package org.apache.spark.barograph.messages

import org.apache.spark.barograph.enforce.{Capacity, Enforced}
import org.apache.spark.barograph.kafka.{Topic, TopicSize}
import org.apache.spark.barograph.orders.{HowFar, InstanceKey, Orders, Share}
import org.apache.spark.barograph.telemetry.{LifeReport, MeterReport, ProcessUse}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class MessagesTest {
  private val meter = MeterReport(
    1L, 2L, 3L, 4L, 5L, Long.MaxValue, Array(0L, 7L), Array(9L, 8L, 1L, 2L), Array.emptyLongArray, -1L, -1L, -1L, -1L,
    throttledNs = 12L, heldMs = 13L, record = Array(7L, 6L, 3L, 4L), dueAgeMs = 14L)
  private val life = LifeReport(
    "wörter", "run", 12L, "count", 3, "executor-1", 4711, 4712, 1700000000000L, 0L, 99L, 17L, Array(5L, -6L), meter)
  private val orders = Orders(
    17L, Map("run" -> 3L, "other" -> Long.MinValue), Set("quiet", "wörter"), Map("wörter" -> 5000L),
    Map(InstanceKey("wörter", "count", 3) -> Share(12500L, 0L), InstanceKey("t", "count", 0) -> Share(100000L, 7L)),
    "cgroup", Map("1" -> 2, "2" -> 2))
  private val instance = HowFar("run", 12L, "count", 3, reads = false, waits = true, taken = 10L, sent = 0L)

  private val samples: Seq[(Array[Byte], Array[Byte] => Any)] = Seq(
    (Messages.hello("executor-1"), Messages.helloIn(_)),
    (Messages.askHowFar("wörter"), Messages.askHowFarIn(_)),
    (Messages.askReport(heard = true), Messages.askReportIn(_)),
    (Messages.key(Array.tabulate(32)(_.toByte)), Messages.keyIn(_)),
    (Messages.orders(orders), Messages.ordersIn(_)),
    (Messages.howFar(Seq(instance, instance.copy(index = 4, reads = true))), Messages.howFarIn(_)),
    (Messages.report(Report("executor-1", -1L, Seq(life, life), ProcessUse(1L, 2L))), Messages.reportIn(_)))

  @Test def ordersComeBack(): Unit = assertEquals(orders, Messages.ordersIn(Messages.orders(orders)))

  @Test def namesComeBack(): Unit = {
    assertEquals("executor-1", Messages.helloIn(Messages.hello("executor-1")))
    assertEquals("", Messages.askHowFarIn(Messages.askHowFar("")))
  }

  @Test def aKeyComesBack(): Unit = {
    val key = Array.tabulate(32)(i => (i * 9 - 128).toByte)
    assertArrayEquals(key, Messages.keyIn(Messages.key(key)))
  }

  @Test def howFarComesBack(): Unit = {
    val all = Seq(instance, instance.copy(index = 4, waits = false, reads = true, sent = Long.MaxValue))
    assertEquals(all, Messages.howFarIn(Messages.howFar(all)))
    assertEquals(Nil, Messages.howFarIn(Messages.howFar(Nil)))
  }

  @Test def aReportComesBack(): Unit = {
    val second = life.copy(index = 4, endedMs = 5L, output = Array.emptyLongArray, meter = meter.copy(loadMs = 77L))
    val (capacity, enforced) = (Capacity("/pod/1", 1500L, 8000L), Enforced("cooperative", "no rights"))
    val topics = Seq(TopicSize(Topic("a:9092,b:9092", "wörter"), 6), TopicSize(Topic("a:9092,b:9092", "t"), 1))
    val found = Messages.reportIn(Messages.report(
      Report("executor-1", 8L, Seq(life, second), ProcessUse(-5L, 6L), Seq("2"), capacity, enforced, topics)))
    assertEquals((Seq("2"), capacity, enforced), (found.unreachable, found.capacity, found.enforced))
    assertEquals(topics, found.topics)
    assertEquals(("executor-1", 8L, ProcessUse(-5L, 6L)), (found.executor, found.heard, found.process))
    assertEquals(Seq(life, second).map(plain), found.lives.map(plain))
  }

  /** Arrays as sequences, which are equal if their items are. */
  private def plain(life: LifeReport): Seq[Any] = life.productIterator.toSeq.flatMap {
    case numbers: Array[Long] => Seq(numbers.toSeq)
    case meter: MeterReport => meter.productIterator.toSeq.map { case n: Array[Long] => n.toSeq; case other => other }
    case other => Seq(other)
  }

  @Test def numbersOfEverySizeComeBack(): Unit = {
    val numbers = (0 to 63).flatMap(i => Seq(1L << i, -(1L << i), (1L << i) - 1)).toArray
    val writer = new MessageWriter(Wire.Orders)
    writer.longs(numbers)
    val reader = new MessageReader(writer.result, Wire.Orders)
    assertArrayEquals(numbers, reader.longs())
    reader.end()
  }

  @Test def aTruncatedMessageIsMalformed(): Unit = for ((message, read) <- samples; n <- message.indices) {
    assertThrows(classOf[Malformed], () => read(message.take(n)): Unit)
  }

  @Test def aMessageWithMoreThanItsContentIsMalformed(): Unit =
    for ((message, read) <- samples) assertThrows(classOf[Malformed], () => read(message :+ 0.toByte): Unit)

  @Test def anotherVersionIsMalformed(): Unit = for ((message, read) <- samples) {
    val error = assertThrows(classOf[Malformed], () => read(message.updated(0, 99.toByte)): Unit)
    assertTrue(error.getMessage.contains("version 99"))
  }

  @Test def anotherKindIsMalformed(): Unit =
    for ((message, read) <- samples) assertThrows(classOf[Malformed], () => read(message.updated(1, 0.toByte)): Unit)

  /** Wrong bytes give a wrong message or none, but neither another error nor much memory. */
  @Test def aDamagedByteIsNoOtherError(): Unit = for ((message, read) <- samples; i <- message.indices; b <- 0 to 255) {
    try read(message.updated(i, b.toByte)) catch { case _: Malformed => () }
  }

  @Test def textsAreSentOnce(): Unit = {
    def size(lives: Int): Int =
      Messages.report(Report("executor-1", 0L, Seq.fill(lives)(life), ProcessUse(0L, 0L))).length
    assertTrue(size(2) - size(1) < size(1) - 20)
  }
}
