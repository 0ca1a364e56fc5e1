package org.apache.spark.barograph.shuffle

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class GrantWindowTest {
  private val ms = 1000000L
  private val target = 200 * ms

  private def begun(rows: Int): GrantWindow = {
    val window = new GrantWindow(target)
    window.begin(5 * ms, 2 * ms)
    for (_ <- 0 until rows) window.took()
    window
  }

  @Test def itBeginsWithTheFirstRow(): Unit = {
    assertFalse(new GrantWindow(target).begun)
    assertTrue(begun(0).begun)
  }

  @Test def theGrantIsWhatTheInstanceExecutesInTheTarget(): Unit =
    assertEquals(2000L, begun(100).rowsFor(1, 15 * ms, 2 * ms))

  @Test def sendersGetEqualParts(): Unit = assertEquals(500L, begun(100).rowsFor(4, 15 * ms, 2 * ms))

  @Test def idleTimeDoesNotCount(): Unit = assertEquals(2000L, begun(100).rowsFor(1, 45 * ms, 32 * ms))

  @Test def aMomentIsNoBasisForARate(): Unit = {
    val window = begun(100)
    assertEquals(Credit.FirstRows, window.rowsFor(1, 6 * ms - 1, 2 * ms))
    assertTrue(window.rowsFor(1, 7 * ms, 2 * ms) > 9000L, "the rows of the moment are kept: 100 in 2 ms")
  }

  @Test def theGrantHasBounds(): Unit = {
    assertEquals(Credit.FewestRows, begun(1).rowsFor(1, 5000 * ms, 2 * ms))
    assertEquals(Credit.FewestRows, begun(100).rowsFor(1000000, 15 * ms, 2 * ms))
    assertEquals(Credit.MostRows, begun(1000000).rowsFor(1, 6 * ms, 2 * ms))
  }

  @Test def afterOneTargetOnlyTheNewRateCounts(): Unit = {
    val window = begun(100)
    window.rowsFor(1, 15 * ms, 2 * ms)
    for (_ <- 0 until 50) window.took()
    assertEquals(50L, window.rowsFor(1, 15 * ms + target, 2 * ms))
  }

  @Test def olderRowsFadeOut(): Unit = {
    val window = begun(100)
    window.rowsFor(1, 15 * ms, 2 * ms)
    // Half a target later, without a row: half of 100 rows and of 10 ms are left, and 100 ms more.
    assertEquals((50.0 / 105 * 200).toLong, window.rowsFor(1, 115 * ms, 2 * ms))
  }

  @Test def aClockThatSeemsToGoBackChangesNothing(): Unit =
    assertEquals(Credit.FirstRows, begun(100).rowsFor(1, 15 * ms, 32 * ms))
}
