package org.apache.spark.barograph.shuffle

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class GrantWindowTest {
  private val ms = 1000000L
  private val target = 160 * ms // the shortest time ahead is 10 ms

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

  @Test def theWindowIsWhatTheInstanceExecutesInTheTimeAhead(): Unit =
    assertEquals(100L, begun(200).rowsAt(25 * ms, 2 * ms))

  @Test def idleTimeDoesNotCount(): Unit = assertEquals(100L, begun(200).rowsAt(55 * ms, 32 * ms))

  @Test def aReceiverThatRunsDryGetsMoreUpToTheTarget(): Unit = {
    val window = begun(200)
    window.rowsAt(25 * ms, 2 * ms)
    val found = for (_ <- 0 until 6) yield { window.ranDry(); window.rowsAt(25 * ms, 2 * ms) }
    assertEquals(Seq(200L, 400L, 800L, 1600L, 1600L, 1600L), found)
  }

  @Test def theTimeAheadShrinksWhileTheReceiverHasRows(): Unit = {
    val window = begun(200)
    window.rowsAt(25 * ms, 2 * ms)
    for (_ <- 0 until 4) window.ranDry()
    var nowMs = 25L
    val found = for (_ <- 0 until 100) yield {
      for (_ <- 0 until 500) window.took()
      nowMs += 50
      window.rowsAt(nowMs * ms, 2 * ms)
    }
    assertTrue(found.zip(found.tail).forall { case (before, after) => after <= before + 1 }, s"$found")
    assertTrue(found.head > 1400L, s"$found")
    assertEquals(100.0, found.last.toDouble, 1.0, "never below the shortest time ahead")
  }

  @Test def aMomentIsNoBasisForARate(): Unit = {
    val window = begun(30)
    assertEquals(60L, window.rowsAt(6 * ms - 1, 2 * ms))
    assertEquals(150.0, window.rowsAt(7 * ms, 2 * ms).toDouble, 1.0, "the rows of the moment are kept: 30 in 2 ms")
  }

  @Test def runningDryAtTheStartDoesNotCount(): Unit = {
    val window = begun(30)
    window.ranDry()
    assertEquals(150.0, window.rowsAt(7 * ms, 2 * ms).toDouble, 1.0)
  }

  @Test def theWindowHasBounds(): Unit = {
    assertEquals(GrantWindow.FewestRows, begun(1).rowsAt(5000 * ms, 2 * ms))
    assertEquals(GrantWindow.MostRows, begun(10000000).rowsAt(6 * ms, 2 * ms))
  }

  @Test def afterOneTargetOnlyTheNewRateCounts(): Unit = {
    val window = begun(100)
    window.rowsAt(15 * ms, 2 * ms)
    for (_ <- 0 until 80) window.took()
    assertEquals(5L, window.rowsAt(15 * ms + target, 2 * ms))
  }

  @Test def olderRowsFadeOut(): Unit = {
    val window = begun(1000)
    window.rowsAt(15 * ms, 2 * ms)
    // Half a target later, without a row: half of 1000 rows and of 10 ms are left, and 80 ms more.
    assertEquals((500.0 / 85 * 10).toLong, window.rowsAt(95 * ms, 2 * ms))
  }

  @Test def aClockThatSeemsToGoBackChangesNothing(): Unit =
    assertEquals(200L, begun(100).rowsAt(15 * ms, 32 * ms), "no time was spent, as in the first moment")
}
