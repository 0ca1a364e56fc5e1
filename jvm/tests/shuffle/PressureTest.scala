package org.apache.spark.barograph.shuffle

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class PressureTest {
  private val period = Pressure.PeriodNs

  private def after(waitedNs: Long, spentNs: Long): Boolean = {
    val pressure = new Pressure
    pressure.restart(1000L)
    pressure.waited(waitedNs)
    pressure.behindBy(1000L + spentNs)
  }

  @Test def receiversAreBehindIfHalfOfAPeriodWasWaited(): Unit = {
    assertTrue(after(period / 2, period))
    assertFalse(after(period / 2 - 1, period))
    assertTrue(after(period, period * 2))
    assertFalse(after(period, period * 2 + 1))
  }

  @Test def nothingIsJudgedWithinAPeriod(): Unit = assertFalse(after(period - 1, period - 1))

  @Test def theAnswerHoldsUntilTheNextPeriodIsOver(): Unit = {
    val pressure = new Pressure
    pressure.restart(0L)
    pressure.waited(period)
    assertTrue(pressure.behindBy(period))
    assertTrue(pressure.behindBy(2 * period - 1))
    assertFalse(pressure.behindBy(2 * period), "what was waited in one period does not count in the next")
  }

  @Test def aRestartForgetsWaits(): Unit = {
    val pressure = new Pressure
    pressure.restart(0L)
    pressure.waited(period)
    pressure.restart(period)
    assertFalse(pressure.behindBy(2 * period))
  }
}
