package org.apache.spark.barograph.telemetry

import org.apache.spark.barograph.enforce.Allowance
import org.junit.jupiter.api.{AfterEach, Test}
import org.junit.jupiter.api.Assertions._

class LivesTest {
  private val Ms = 1000000L
  private var lives = Seq.empty[Life]

  private def begin(count: Int): Unit = {
    val more = (0 until count).map(new Life("lives", "lives-run", 0L, "split", _, "executor-1", 1, 1, 1L))
    lives ++= more
    more.foreach(Lives.begin)
  }

  @AfterEach def endAll(): Unit = {
    lives.foreach(_.end())
    Lives.fresh()
    Lives.heard()
  }

  @Test def whatBeginsOrEndsIsNews(): Unit = {
    begin(1)
    assertTrue(Lives.hasNews)
    assertEquals(1, Lives.fresh().size)
    assertFalse(Lives.hasNews)
    lives.head.end()
    assertTrue(Lives.hasNews)
    assertTrue(Lives.fresh().head.endedMs > 0)
    assertFalse(Lives.hasNews)
    assertEquals(Nil, Lives.fresh())
  }

  @Test def whatTheDriverHasNotAcknowledgedIsNewsAndIsRepeated(): Unit = {
    begin(1)
    lives.head.end()
    assertEquals(1, Lives.report().size)
    assertTrue(Lives.hasNews)
    assertEquals(Nil, Lives.answer(heard = true), "a report that is asked for does not repeat it")
    assertEquals(1, Lives.report().size)
    Lives.heard()
    assertFalse(Lives.hasNews)
    assertEquals(Nil, Lives.report())
  }

  @Test def anAnswerThatTheDriverMissedIsRepeatedByTheNextOne(): Unit = {
    begin(1)
    lives.head.row()
    lives.head.end()
    val told = Lives.answer(heard = true)
    assertEquals(Seq(true), told.map(_.endedMs > 0))
    assertFalse(Lives.hasNews, "the driver says soon whether it has it")
    assertEquals(told, Lives.answer(heard = false))
    assertEquals(Nil, Lives.answer(heard = true))
  }

  @Test def anAnswerThatTheDriverMissedIsRepeatedByTheNextReport(): Unit = {
    begin(1)
    lives.head.end()
    val told = Lives.answer(heard = true)
    assertEquals(told, Lives.report())
    assertEquals(Nil, Lives.answer(heard = false), "it is in a report that is not acknowledged")
    assertEquals(told, Lives.report())
  }

  @Test def eachReportSaysHowMuchOutputThereWasBefore(): Unit = {
    begin(1)
    lives.head.row()
    val started = System.currentTimeMillis()
    while (System.currentTimeMillis() / 10 == started / 10) Thread.onSpinWait()
    lives.head.row()
    val first = Lives.fresh().head
    lives.head.end()
    val last = Lives.fresh().head
    assertEquals(0L, first.outputBefore)
    assertEquals(first.output.length / 2L, last.outputBefore)
    assertEquals(2L, (first.output ++ last.output).grouped(2).map(_(1)).sum)
  }

  @Test def theNextEpochOfAnOperatorThatHasWorkedHereHasAShortBeginning(): Unit = {
    def life(epoch: Long): Life = new Life("lives", "warm-run", epoch, "split", 0, "executor-1", 1, 1, 1L)
    val first = life(0L)
    assertEquals(Allowance.BeginningNs, first.allowance.beginningNs)
    first.rowsRead.increment()
    val madeNs = System.nanoTime()
    while (System.nanoTime() - madeNs < Allowance.BeginningNs) Thread.onSpinWait()
    first.end()
    assertEquals(Allowance.ShortBeginningNs, life(1L).allowance.beginningNs)
  }

  @Test def fewAreReportedEachTimeAndManyInTheirTurn(): Unit = {
    begin(39)
    assertEquals(39, Lives.fresh(1000 * Ms).size)
    assertEquals(39, Lives.fresh(1001 * Ms).size)
    begin(171) // 210 in all: each at most every 800 ms
    assertEquals(171, Lives.fresh(1002 * Ms).size)
    assertEquals(0, Lives.fresh(1100 * Ms).size)
    assertEquals(39, Lives.fresh(1801 * Ms).size)
    assertEquals(171, Lives.fresh(1802 * Ms).size)
  }

  @Test def latenciesAreReportedLessOften(): Unit = {
    begin(1)
    val life = lives.head
    life.meter.due = new Histogram
    life.meter.due.record(5L)
    def told(ms: Long): Boolean = Lives.fresh(ms * Ms).head.meter.due.nonEmpty
    assertEquals(Seq(true, false, false, true, false), Seq(1000L, 1200L, 1799L, 1800L, 2599L).map(told))
  }
}
