package org.apache.spark.barograph.shuffle

import java.util.SplittableRandom

import io.netty.buffer.{ByteBuf, ByteBufInputStream, ByteBufOutputStream, Unpooled}
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Assertions._

import org.apache.spark.sql.catalyst.expressions.{SpecificInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.UnsafeRowSerializer
import org.apache.spark.sql.types.{DataType, LongType}

class TimeRunsTest {
  private val serializer = new UnsafeRowSerializer(1).newInstance()

  private def message(values: Seq[Long]): ByteBuf = {
    val buffer = Unpooled.buffer()
    val stream = serializer.serializeStream(new ByteBufOutputStream(buffer))
    val projection = UnsafeProjection.create(Array[DataType](LongType))
    val row = new SpecificInternalRow(Seq(LongType))
    for (value <- values) { row.setLong(0, value); stream.writeValue(projection(row)) }
    stream.flush()
    buffer
  }

  private def rowsIn(buffer: ByteBuf): Seq[Long] =
    serializer.deserializeStream(new ByteBufInputStream(buffer.duplicate())).asKeyValueIterator
      .map(_._2.asInstanceOf[UnsafeRow].getLong(0)).toSeq

  private def runsOf(times: Seq[Long]): TimeRuns = {
    val runs = new TimeRuns
    times.foreach(runs.add)
    runs
  }

  /** What a receiver reads of times that were sent. */
  private def through(times: Seq[Long]): Seq[Long] = {
    val buffer = message(times)
    runsOf(times).write(buffer)
    val read = new TimeRuns
    read.read(buffer, buffer.readableBytes())
    times.map(_ => read.next())
  }

  @Test def sparksReaderOfRowsDoesNotSeeTheTimes(): Unit = {
    val values = Seq(7L, -1L, 0x42415254L)
    val buffer = message(values)
    runsOf(Seq(1234567890123L, 1234567890124L, 5L)).write(buffer)
    assertEquals(values, rowsIn(buffer))
    // As in a message, whose rows come after a header that has been read.
    val whole = Unpooled.buffer().writeLong(5L).writeBytes(buffer.duplicate())
    whole.readLong()
    val read = new TimeRuns
    read.read(whole, whole.readableBytes())
    assertEquals(Seq(1234567890123L, 1234567890124L, 5L), Seq.fill(3)(read.next()))
  }

  @Test def aMessageWithoutTimesHasNone(): Unit = {
    val read = new TimeRuns
    for (values <- Seq(Seq(-1L), Seq(1L, 2L, 3L), Nil)) {
      val buffer = message(values)
      read.read(buffer, buffer.readableBytes())
      assertEquals(0L, read.next())
    }
    // The end looks like ours, and the number of runs does not fit.
    for (count <- Seq(-1, 1, 33, Int.MaxValue)) {
      val buffer = Unpooled.buffer().writeInt(-1).writeInt(count).writeInt(0x42415254)
      read.read(buffer, buffer.readableBytes())
      assertEquals(0L, read.next())
    }
  }

  @Test def fewTimesAreExact(): Unit = {
    val times = Seq(50L, 50L, 51L, 40L, 90000L, 90000L, 40L)
    assertEquals(times, through(times))
    val many = (0 until 1000).map(i => 1700000000000L + i / 40)
    assertEquals(many, through(many), "a thousand rows of 25 milliseconds")
  }

  @Test def manyTimesAreBoundedAndNoRowIsYoungerThanItIs(): Unit = {
    val random = new SplittableRandom(5L)
    val shapes: Seq[Int => Long] = Seq(
      i => 1000000L + i, // overdue rows in order
      i => 1000000L + 7L * i, i => 1000000L - 3L * i,
      i => if (i % 2 == 0) 5000L + i else 900000L + i, // two inputs, one far behind
      _ => random.nextLong(1L, 1000000L))
    for (shape <- shapes; n <- Seq(1, 32, 33, 1000)) {
      val times = (0 until n).map(shape)
      val found = through(times)
      val spread = times.max - times.min
      assertTrue(found.zip(times).forall { case (f, t) => f <= t && f >= times.min })
      if (n <= TimeRuns.Most) assertEquals(times, found)
      else assertTrue(found.zip(times).map { case (f, t) => t - f }.max <= spread)
    }
  }

  @Test def timesInOrderAreOffByASmallPartOfTheirSpread(): Unit = {
    for (step <- Seq(1L, 2L, 13L)) {
      val times = (0 until 1000).map(i => 1000000L + step * i)
      val off = through(times).zip(times).map { case (f, t) => t - f }
      assertTrue(off.max <= (times.last - times.head) / 7, s"${off.max}")
    }
  }

  @Test def theyAreUsedAgain(): Unit = {
    val runs = runsOf((0 until 1000).map(_.toLong))
    runs.clear()
    Seq(3L, 4L).foreach(runs.add)
    val buffer = Unpooled.buffer()
    runs.write(buffer)
    val read = new TimeRuns
    read.read(buffer, buffer.readableBytes())
    assertEquals(Seq(3L, 4L, 4L), Seq.fill(3)(read.next()), "a row more than there are times has the last one")
  }
}
