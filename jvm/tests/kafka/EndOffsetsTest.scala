package org.apache.spark.barograph.kafka

import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

/** The thread that asks for ends of topics, with a broker that is made up. */
@Timeout(60)
class EndOffsetsTest {
  private class Outage extends RuntimeException

  /** Each question takes the next answer: a number for all partitions, or an error. */
  private class Broker extends EndOffsetClient {
    val answers = new LinkedBlockingQueue[Either[Throwable, Long]]()
    val opened, closed = new AtomicInteger
    @volatile var partitions = 4

    def open(): EndOffsetClient = { opened.incrementAndGet(); this }
    def ends(partitions: Seq[AnyRef]): Map[AnyRef, Long] =
      answers.take().fold(error => throw error, end => partitions.map(_ -> end).toMap)
    def sizes(partitions: Seq[AnyRef]): Map[String, Int] =
      partitions.map(_.toString.takeWhile(_ != '-') -> this.partitions).toMap
    def isOutage(error: Throwable): Boolean = error.isInstanceOf[Outage]
    def close(): Unit = closed.incrementAndGet()
  }

  private val HourMs = 3600000L

  private def asker(
      broker: Broker, lingerMs: Long = 60000L, everyMs: Long = 1L, afterMs: Long = 0L,
      sizesMs: Long = 1L): EndOffsetAsker =
    new EndOffsetAsker(() => broker.open(), _ => true, everyMs, lingerMs, retryMs = 1L, afterMs, sizesMs)

  private def settle(isSo: => Boolean): Unit = while (!isSo) Thread.sleep(1L)

  @Test def theEndRisesAndTheFirstIsKept(): Unit = {
    val broker = new Broker
    val figure = asker(broker).watch("t-0")
    assertEquals(-1L, figure.end)
    broker.answers.put(Right(5L))
    settle(figure.end == 5L)
    broker.answers.put(Right(9L))
    settle(figure.end == 9L)
    assertEquals(5L, figure.first)
  }

  @Test def aBrokerThatDoesNotAnswerDelaysNothingAndItsFigureGrowsOld(): Unit = {
    val broker = new Broker
    val asking = asker(broker)
    val figure = asking.watch("t-0")
    broker.answers.put(Right(5L))
    settle(figure.end == 5L)
    val input = new KafkaInput("t-0", figure, () => asking.leave(figure), () => 3L)
    assertEquals(5L, input.dueRows(0L))
    assertEquals(3L, input.position(77L))
    assertEquals(0L, input.ageMs, "two seconds are usual")
    val sinceNs = System.nanoTime()
    figure.atNs -= 10L * 1000000000L
    assertTrue(input.ageMs >= 8000L)
    assertEquals(5L, input.dueRows(0L), "old, but the last that is known")
    figure.atNs -= 60L * 1000000000L
    assertEquals(-1L, input.dueRows(0L), "unknown")
    // The question is still open; another partition can be watched, and both can be left.
    val other = asking.watch("t-1")
    asking.leave(other)
    input.close()
    assertTrue(System.nanoTime() - sinceNs < 10L * 1000000000L)
  }

  @Test def anOutageKeepsTheClientAndAnotherErrorOpensAnother(): Unit = {
    val broker = new Broker
    val figure = asker(broker).watch("t-0")
    broker.answers.put(Left(new Outage))
    broker.answers.put(Right(1L))
    settle(figure.end == 1L)
    assertEquals(1, broker.opened.get)
    broker.answers.put(Left(new NoClassDefFoundError("gone")))
    broker.answers.put(Right(2L))
    settle(figure.end == 2L)
    assertEquals(2, broker.opened.get)
    assertEquals(1, broker.closed.get)
  }

  @Test def theThreadEndsWhenNothingIsReadAnyMore(): Unit = {
    val broker = new Broker
    val asking = asker(broker, lingerMs = 500L)
    val figure = asking.watch("t-0")
    broker.answers.put(Right(1L))
    settle(figure.end == 1L)
    asking.leave(figure)
    broker.answers.put(Right(1L)) // the question that is under way
    asking.thread.join(TimeUnit.SECONDS.toMillis(30))
    assertFalse(asking.thread.isAlive)
    assertEquals(1, broker.closed.get)
  }

  @Test def aPartitionThatIsNewIsAskedForAtOnce(): Unit = {
    val broker = new Broker
    val hourly = asker(broker, everyMs = HourMs)
    val first = hourly.watch("t-0")
    broker.answers.put(Right(1L))
    settle(first.end == 1L)
    broker.answers.put(Right(2L))
    val second = hourly.watch("t-1")
    settle(second.end == 2L)
  }

  /** Nothing was asked while no instance read it: between two epochs, or while the query was down. */
  @Test def aPartitionThatIsReadAgainIsAskedForAtOnceIfItsFigureIsOld(): Unit = {
    val broker = new Broker
    val hourly = asker(broker, everyMs = HourMs)
    val figure = hourly.watch("t-0")
    broker.answers.put(Right(1L))
    settle(figure.end == 1L)
    hourly.leave(figure)
    figure.atNs -= 2L * HourMs * 1000000L
    broker.answers.put(Right(2L))
    assertSame(figure, hourly.watch("t-0"))
    settle(figure.end == 2L)
    assertEquals(1L, figure.first, "what came meanwhile has arrived")
  }

  @Test def itKnowsHowManyPartitionsTheTopicsHaveThatAreRead(): Unit = {
    val broker = new Broker
    val asking = asker(broker)
    val figures = Seq("t-0", "t-1", "u-0").map(asking.watch)
    broker.answers.put(Right(1L))
    settle(asking.sizes.nonEmpty)
    broker.partitions = 6
    while (asking.sizes != Map("t" -> 6, "u" -> 6)) { // it may have begun to ask when not all were watched
      broker.answers.offer(Right(1L))
      Thread.sleep(1L)
    }
    figures.foreach(asking.leave)
    while (asking.sizes.nonEmpty) {
      broker.answers.offer(Right(1L)) // a question may be under way
      Thread.sleep(1L)
    }
  }

  @Test def howManyPartitionsThereAreIsAskedLessOften(): Unit = {
    val broker = new Broker
    val asking = asker(broker, sizesMs = HourMs)
    val figure = asking.watch("t-0")
    broker.answers.put(Right(1L))
    settle(asking.sizes == Map("t" -> 4))
    broker.partitions = 6
    for (end <- 2L to 5L) broker.answers.put(Right(end))
    settle(figure.end == 5L)
    assertEquals(Map("t" -> 4), asking.sizes)
  }

  @Test def aPartitionThatIsLeftIsAskedForALittleLonger(): Unit = {
    val broker = new Broker
    val asking = asker(broker, afterMs = HourMs)
    val figure = asking.watch("t-0")
    broker.answers.put(Right(1L))
    settle(figure.end == 1L)
    asking.leave(figure)
    for (end <- 2L to 5L) broker.answers.put(Right(end))
    settle(figure.end == 5L)
  }
}
