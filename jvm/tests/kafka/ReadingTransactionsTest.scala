package org.apache.spark.barograph.kafka

import java.lang.{Long => JLong}

import org.apache.spark.barograph.orders.{Cuts, Gates}
import org.apache.spark.barograph.planner.{CuttableReader, TimeColumn}
import org.apache.spark.barograph.telemetry.{Life, Lives}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.streaming.{PartitionOffset, SupportsRealTimeRead}
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead.RecordStatus
import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

/** An instance that reads a topic which is written in transactions: behind the last row there is always a mark. */
@Timeout(60)
class ReadingTransactionsTest {
  private val DayMs = 86400000L
  private val WaitNs = 5000000L
  private val Rows = 50

  /** Each row comes after a while and is a transaction. The first call finds none, and each after the last row. */
  private final class Transactions extends SupportsRealTimeRead[InternalRow] {
    @volatile var offset, calls = 0L
    val figure = new EndOffset
    mark()

    private def mark(): Unit = figure.put(offset + 1L, System.nanoTime())
    override def nextWithTimeout(timeoutMs: JLong): RecordStatus = nextWithTimeout(0L, timeoutMs)
    override def nextWithTimeout(startMs: JLong, timeoutMs: JLong): RecordStatus = {
      calls += 1L
      val found = calls > 1L && calls <= Rows + 1L
      val untilNs = System.nanoTime() + (if (found) WaitNs else timeoutMs * 1000000L)
      while (System.nanoTime() < untilNs) Thread.onSpinWait()
      if (found) offset += 2L
      mark()
      RecordStatus.newStatusWithoutArrivalTime(found)
    }
    override def next(): Boolean = true
    override def get(): InternalRow = InternalRow.empty
    override def getOffset: PartitionOffset = new PartitionOffset {}
    override def close(): Unit = ()
  }

  @Test def itsWaitsAreIdleAndItHasNoBacklogInTheEnd(): Unit = {
    val (topic, cut) = (new Transactions, new Cuts.Line)
    val life = new Life("transactions", "transactions-run", 0L, "source", 0, "1", 0, 0, 1L)
    life.meter.load = new KafkaInput("t-0", topic.figure, () => (), () => topic.offset, quietMs = 100L)
    val reading = new Thread(() => {
      Lives.runAs(life)
      val reader = new CuttableReader(topic, cut, new Gates.Gate, 0L, DayMs, DayMs, TimeColumn.Unknown)
      while (reader.nextWithTimeout(System.currentTimeMillis(), DayMs).hasRecord) {}
    })
    reading.setDaemon(true)
    reading.start()
    val untilNs = System.nanoTime() + 30000000000L
    def backlog: Long = life.meter.load.dueRows(0L) - life.meter.load.position(0L)
    while (topic.calls <= Rows + 1L || backlog > 0L) {
      assertTrue(System.nanoTime() < untilNs, s"a backlog of $backlog after ${topic.calls} calls")
      Thread.onSpinWait()
    }
    val idleNs = life.meter.idleNsBy(System.nanoTime())
    cut.epoch = 0L
    reading.join(30000L)
    assertFalse(reading.isAlive)
    assertTrue(idleNs >= Rows * WaitNs, s"${idleNs / 1000000L} ms idle")
  }
}
