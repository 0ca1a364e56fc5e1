package org.apache.spark.barograph.shuffle

import scala.collection.mutable

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class CreditPoolTest {
  private val ms = 1000000L
  private val gave = mutable.ArrayBuffer[(Int, Long)]()
  private val pool = new CreditPool(160 * ms, (sender, rows) => gave += sender -> rows)
  private var nowNs = ms

  private def join(senders: Int*): Unit = for (s <- senders) { assertTrue(pool.joined(s)); pool.readingFrom(s) }

  /** What is given while a row of this sender goes in, so many milliseconds after the last. */
  private def take(sender: Int, afterMs: Double = 0): Seq[(Int, Long)] = {
    nowNs += (afterMs * ms).toLong
    val before = gave.size
    pool.readingFrom(sender)
    if (pool.took(sender)) { if (pool.begun) pool.share(sender, nowNs, 0L) else pool.begin(nowNs, 0L) }
    gave.drop(before).toSeq
  }

  /** The receiver is at a rate of 10 rows a millisecond, which makes a window of 100. */
  private def atSpeed(sender: Int): Unit = for (_ <- 0 until 400) take(sender, 0.1)

  @Test def whatIsGivenAtFirstIsOneRowForAll(): Unit = {
    join(0, 1, 2)
    for (s <- 0 to 2) pool.asks(s)
    assertEquals(Seq(0 -> 1L), gave.toSeq)
  }

  @Test def slowRowsGoAroundAmongThoseThatAsk(): Unit = {
    join(0, 1, 2)
    for (s <- 0 to 2) pool.asks(s)
    val turns = for (_ <- 0 until 6) yield {
      val sender = gave.last._1
      val next = take(sender, 400)
      assertEquals(1, next.size)
      pool.asks(sender)
      next.head
    }
    assertEquals(Seq(1, 2, 0, 1, 2, 0).map(_ -> 1L), turns)
  }

  @Test def aSenderThatDoesNotAskHoldsNoSlowRowsBack(): Unit = {
    join(0 to 15: _*)
    pool.asks(3)
    for (_ <- 0 until 5) {
      assertEquals(3 -> 1L, gave.last)
      take(3, 400)
      pool.asks(3)
    }
    assertEquals(6, gave.size)
  }

  @Test def sendersHaveCreditOfTheirOwnWhereRowsAreFast(): Unit = {
    join(0, 1)
    pool.asks(0)
    atSpeed(0)
    assertTrue(gave.map(_._2).sum > 400L, "it asked only once")
  }

  @Test def togetherTheyGetNoMoreThanTheWindow(): Unit = {
    join(0 to 15: _*)
    val left = mutable.Map((0 to 15).map(_ -> 0L): _*)
    var counted = 0
    val outs = for (_ <- 0 until 5000) yield {
      for (s <- 0 to 15 if left(s) == 0L) pool.asks(s)
      for ((s, rows) <- gave.drop(counted)) left(s) += rows
      counted = gave.size
      val out = left.values.sum
      val sender = left.maxBy(_._2)._1
      take(sender, 0.1)
      left(sender) -= 1
      out
    }
    val found = outs.drop(500).distinct.sorted
    assertTrue(found.head >= 40L && found.last <= 101L, s"${found.head} to ${found.last}")
  }

  @Test def thoseThatAskAreServedBeforeOthersGetMore(): Unit = {
    join(0, 1)
    pool.asks(0)
    atSpeed(0)
    gave.clear()
    pool.asks(1)
    Iterator.continually(take(0, 0.1)).find(_.nonEmpty)
    assertEquals(1, gave.head._1)
    assertEquals(50.0, gave.head._2.toDouble, 5.0, "half of a window of 100")
  }

  @Test def aSenderThatAsksAgainAndAgainGetsMoreEachTime(): Unit = {
    join(0 to 15: _*)
    pool.asks(0)
    atSpeed(0)
    gave.clear()
    for (_ <- 0 until 4) { pool.asks(1); for (_ <- 0L until gave.last._2) take(1, 0.1) }
    val sizes = gave.filter(_._1 == 1).map(_._2)
    assertTrue(sizes.head < 10L && sizes.max > 20L && sizes.max <= 51L, s"$sizes")
  }

  @Test def whatASenderLeavesAtItsEndIsGivenToOthers(): Unit = {
    join(0, 1)
    pool.asks(0)
    pool.asks(1)
    assertEquals(Seq(0 -> 1L), gave.toSeq)
    pool.finished(0)
    assertEquals(Seq(0 -> 1L, 1 -> 1L), gave.toSeq)
  }

  @Test def anIdleReceiverGivesThoughOthersHaveItAll(): Unit = {
    join(0, 1)
    pool.asks(0)
    pool.asks(1)
    pool.ranDry()
    assertEquals(1, gave.size, "its row may be on its way")
    pool.stillDry()
    assertEquals(Seq(0 -> 1L, 1 -> 1L), gave.toSeq)
    pool.stillDry()
    assertEquals(2, gave.size, "only to those that ask")
  }

  @Test def runningDryIsForLackOfCreditOnlyIfASenderAskedInVain(): Unit = {
    join(0, 1)
    pool.asks(0)
    assertFalse(pool.ranDry(), "it is starting")
    take(0)
    pool.asks(0)
    assertFalse(pool.ranDry(), "it was given what it asked for")
    pool.asks(0)
    assertTrue(pool.ranDry())
    assertFalse(pool.ranDry(), "counted once")
    pool.asks(0)
    for (_ <- 0L to gave.map(_._2).sum) take(0, 1)
    assertFalse(pool.ranDry(), "its rows came in time")
  }

  @Test def aSenderThatEndedBeforeItJoinedIsNotWaitedFor(): Unit = {
    pool.finished(3)
    assertFalse(pool.joined(3))
    pool.asks(3)
    assertTrue(gave.isEmpty)
  }

  @Test def aSenderThatKnowsNoCreditDoesNotBreakTheCount(): Unit = {
    join(0, 1)
    for (_ <- 0 until 1000) take(0, 0.1)
    gave.clear()
    pool.asks(1)
    assertTrue(gave.map(_._2).sum <= 100L, s"$gave")
    assertEquals(1, gave.head._1)
  }
}
