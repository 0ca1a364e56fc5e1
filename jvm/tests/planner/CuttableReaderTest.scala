package org.apache.spark.barograph.planner

import java.lang.{Long => JLong}
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

import org.apache.spark.barograph.orders.{Cuts, Gates}
import org.apache.spark.barograph.telemetry.{Life, Lives}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus

@Timeout(60)
class CuttableReaderTest {
  private val DayMs = 86400000L
  private val BitMs = 2000000L

  /** A row of two milliseconds of CPU after the other. */
  private final class Endless extends SupportsRealTimeRead[InternalRow] {
    @volatile var rows = 0L
    override def nextWithTimeout(timeoutMs: JLong): RecordStatus = nextWithTimeout(0L, timeoutMs)
    override def nextWithTimeout(startMs: JLong, timeoutMs: JLong): RecordStatus = {
      val untilNs = System.nanoTime() + BitMs
      while (System.nanoTime() < untilNs) Thread.onSpinWait()
      rows += 1
      RecordStatus.newStatusWithArrivalTimeMs(1L)
    }
    override def next(): Boolean = true
    override def get(): InternalRow = InternalRow.empty
    override def getOffset: PartitionOffset = new PartitionOffset {}
    override def close(): Unit = ()
  }

  private def await(what: String)(condition: => Boolean): Unit = {
    val untilNs = System.nanoTime() + 30000000000L
    while (!condition) {
      assertTrue(System.nanoTime() < untilNs, what)
      Thread.onSpinWait()
    }
  }

  /** A limit so low that it would wait for minutes before its next row. */
  @Test def aReaderThatIsHeldBackHearsAPauseAndACut(): Unit = {
    val life = new Life("held", "held-run", 0L, "source", 0, "1", 0, 0, 1L)
    val (gate, cut, source) = (new Gates.Gate, new Cuts.Line, new Endless)
    val reading = new Thread(() => {
      Lives.runAs(life)
      val reader = new CuttableReader(source, cut, gate, 0L, DayMs, DayMs, TimeColumn.Unknown)
      while (reader.nextWithTimeout(System.currentTimeMillis(), DayMs).hasRecord) {}
    })
    reading.start()
    await("the beginning of its epoch did not end")(source.rows > 0 && !life.allowance.isLifted(System.nanoTime()))
    life.allowance.limit(0.00001)
    await("it was not held back")(life.allowance.throttledNsBy(System.nanoTime()) > 100000000L)
    val rows = source.rows
    gate.shut = true
    await("it did not hear the pause")(life.rests)
    gate.shut = false
    await("it did not go on")(!life.rests)
    assertEquals(rows, source.rows, "it still owes")
    cut.epoch = 0L
    reading.join(30000L)
    assertFalse(reading.isAlive, "it did not hear the cut")
  }

  /** How often a reader looks whether its gate is open again, from and to these milliseconds of its rest. */
  private def looks(fromMs: Long, toMs: Long): Int =
    Iterator.iterate(fromMs)(ms => ms + CuttableReader.restMs(ms * 1000000L)).takeWhile(_ < toMs).size

  @Test def aLongRestIsLookedAtFiftyTimesASecond(): Unit = {
    assertEquals(50, looks(1000L, 2000L))
    assertEquals(50, looks(DayMs, DayMs + 1000L))
    assertTrue(looks(0L, 1000L) < 100, s"${looks(0L, 1000L)} times in the first second")
  }

  @Test def aShortRestIsAtMostATenthLonger(): Unit = {
    assertEquals(10, looks(0L, 20L))
    for (ms <- 20L to 1000L) assertTrue(CuttableReader.restMs(ms * 1000000L) <= ms / 10L, s"after $ms ms")
  }

  /** Spark interrupts the thread of a task that it kills. */
  @Test def aReaderThatIsHeldBackHearsAKill(): Unit = {
    val life = new Life("killed", "killed-run", 0L, "source", 0, "1", 0, 0, 1L)
    val (source, heard) = (new Endless, new CountDownLatch(1))
    val reading = new Thread(() => {
      Lives.runAs(life)
      val reader = new CuttableReader(source, new Cuts.Line, new Gates.Gate, 0L, DayMs, DayMs, TimeColumn.Unknown)
      try while (reader.nextWithTimeout(System.currentTimeMillis(), DayMs).hasRecord) {}
      catch { case _: InterruptedException => heard.countDown() }
    })
    reading.setDaemon(true)
    reading.start()
    await("the beginning of its epoch did not end")(source.rows > 0 && !life.allowance.isLifted(System.nanoTime()))
    life.allowance.limit(0.00001)
    await("it was not held back")(life.allowance.throttledNsBy(System.nanoTime()) > 100000000L)
    reading.interrupt()
    assertTrue(heard.await(30L, TimeUnit.SECONDS), "it did not hear the kill")
  }

  /** Spark says at each call how long it still is, by the wall clock, to an end that it does not move. */
  @Test def anEpochIsNotLongerBecauseTheClockIsSetBack(): Unit = {
    val reader = new CuttableReader(
      new Endless, new Cuts.Line, new Gates.Gate, 0L, DayMs, 2000L, TimeColumn.Unknown)
    val (sinceNs, endMs) = (System.nanoTime(), System.currentTimeMillis() + DayMs)
    def reads(setBackMs: Long): Boolean = {
      val startMs = System.currentTimeMillis() - setBackMs
      reader.nextWithTimeout(startMs, endMs - startMs).hasRecord
    }
    assertTrue(reads(0L), "its epoch has only begun")
    await("it went on for as long as the clock was set back")(!reads(3600000L))
    assertTrue(System.nanoTime() - sinceNs > 1500000000L, "it ended before its time")
  }

  /** It has begun on the driver's clock, when it was planned. */
  @Test def anEpochThatTheDriverPlannedEarlierIsSoMuchShorter(): Unit = {
    val (source, gate) = (new Endless, new Gates.Gate)
    val reader = new CuttableReader(source, new Cuts.Line, gate, 0L, DayMs, 5000L, TimeColumn.Unknown)
    def reads(): Boolean = reader.nextWithTimeout(System.currentTimeMillis(), DayMs - 3600000L).hasRecord
    assertFalse(reads(), "it was over before the reader was there")
    assertEquals(0L, source.rows)
    gate.lengthMs = 7200000L
    assertTrue(reads(), "it is longer now")
    gate.lengthMs = 3600000L
    assertFalse(reads(), "it is as long as it has lasted")
  }

  /** The clock was set back between the planning and the first call, or that of the executor's host is behind. */
  @Test def anEpochThatSeemsToBeginLaterIsNotLonger(): Unit = {
    val reader = new CuttableReader(
      new Endless, new Cuts.Line, new Gates.Gate, 0L, DayMs, 2000L, TimeColumn.Unknown)
    val sinceNs = System.nanoTime()
    def reads(): Boolean = reader.nextWithTimeout(System.currentTimeMillis(), DayMs + 3600000L).hasRecord
    assertTrue(reads(), "its epoch has only begun")
    await("its epoch is longer by what the clocks differ")(!reads())
    assertTrue(System.nanoTime() - sinceNs > 1500000000L, "it ended before its time")
  }
}
