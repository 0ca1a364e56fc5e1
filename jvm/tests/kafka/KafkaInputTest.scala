package org.apache.spark.barograph.kafka

import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Assertions._

/** What an instance knows of its partition where offsets at the end are no rows. */
class KafkaInputTest {
  private val Ms = 1000000L
  private val CallMs = 20L
  private val FetchMs = 500L
  private val QuietMs = RowlessEnd.quietMs(fetchWait = null)

  /** A partition that ends there, and one that reads it from epoch to epoch. */
  private class Partition(var next: Long, end: Long) {
    val figure = new EndOffset
    ends(end)
    private var input = opened()

    private def opened() = new KafkaInput("t-0", figure, () => (), () => next)
    def ends(at: Long): Unit = figure.put(at, System.nanoTime())
    def backlog: Long = input.dueRows(0L) - input.position(0L)
    def epochBegins(): Unit = input = opened()
    /** Calls that find nothing, as long as they take in all. */
    def findsNone(ms: Long): Unit = for (_ <- 0L until ms / CallMs) {
      ends(figure.end)
      input.called(found = false, CallMs * Ms)
    }
    /** A call that finds the row at this offset; whether it waited for it. */
    def finds(row: Long): Boolean = {
      next = row + 1L
      input.called(found = true, 5L * Ms)
      input.hadNone(0L)
    }
  }

  @Test def theMarkOfATransactionIsNoBacklogOnceNothingWasFound(): Unit = {
    val partition = new Partition(next = 10L, end = 11L)
    assertEquals(1L, partition.backlog)
    partition.findsNone(FetchMs)
    assertEquals(1L, partition.backlog, "the broker may keep back a row for as long")
    partition.findsNone(QuietMs)
    assertEquals(0L, partition.backlog)
    partition.ends(17L)
    assertEquals(6L, partition.backlog, "of the transaction that came now")
    for (row <- 11L to 15L) partition.finds(row)
    assertEquals(1L, partition.backlog)
    partition.findsNone(QuietMs + 2L * CallMs)
    assertEquals(0L, partition.backlog)
  }

  @Test def aRowInBetweenBeginsTheTimeAnew(): Unit = {
    val partition = new Partition(next = 10L, end = 11L)
    partition.findsNone(QuietMs - CallMs)
    partition.ends(13L)
    partition.finds(11L)
    partition.findsNone(QuietMs - CallMs)
    assertEquals(1L, partition.backlog)
  }

  /** Its end as it was when the calls began: what comes while they last may be rows. */
  @Test def whatComesMeanwhileIsBacklog(): Unit = {
    val partition = new Partition(next = 10L, end = 11L)
    partition.findsNone(QuietMs)
    partition.ends(20L)
    partition.findsNone(2L * CallMs)
    assertEquals(9L, partition.backlog)
  }

  @Test def aBrokerThatDoesNotAnswerProvesNothing(): Unit = {
    val partition = new Partition(next = 10L, end = 400L)
    val input = new KafkaInput("t-0", partition.figure, () => (), () => 10L)
    for (_ <- 1 to 1000) {
      partition.figure.atNs = System.nanoTime() - 1500L * Ms
      input.called(found = false, CallMs * Ms)
    }
    assertEquals(390L, partition.backlog)
    partition.findsNone(FetchMs)
    assertEquals(390L, partition.backlog, "its reader may connect later than what asks for ends")
  }

  @Test def aRowThatWasTakenForNoneIsBelieved(): Unit = {
    val partition = new Partition(next = 10L, end = 20L)
    partition.findsNone(QuietMs + 2L * CallMs)
    assertEquals(0L, partition.backlog)
    assertFalse(partition.finds(10L), "it was there all the time")
    assertEquals(9L, partition.backlog)
  }

  @Test def theNextEpochKnowsItAndOneThatReadsAgainReadsRows(): Unit = {
    val partition = new Partition(next = 10L, end = 11L)
    partition.findsNone(QuietMs - CallMs)
    partition.epochBegins()
    partition.findsNone(4L * CallMs)
    assertEquals(0L, partition.backlog, "the time counts over a boundary, or short epochs would never know")
    partition.epochBegins()
    assertEquals(0L, partition.backlog)
    partition.next = 3L // the epoch has failed
    partition.epochBegins()
    assertEquals(8L, partition.backlog)
  }

  @Test def aTopicThatIsMadeAnewBeginsWithRows(): Unit = {
    val partition = new Partition(next = 10L, end = 11L)
    partition.findsNone(QuietMs + 2L * CallMs)
    partition.ends(0L)
    partition.ends(12L)
    assertEquals(2L, partition.backlog)
  }

  @Test def aWaitThatEndsBeforeAMarkIsAWait(): Unit = {
    val partition = new Partition(next = 10L, end = 11L)
    partition.findsNone(CallMs)
    for (row <- 11L to 99L by 2L) {
      partition.ends(row + 2L) // asked when the transaction was over
      assertTrue(partition.finds(row), s"row $row")
    }
    partition.ends(500L)
    assertFalse(partition.finds(101L), "rows were there")
  }

  @Test def aBrokerThatMayKeepBackRowsForLongerIsWaitedForLonger(): Unit = {
    assertEquals(1500L, RowlessEnd.quietMs(null))
    assertEquals(11000L, RowlessEnd.quietMs("10000"))
    assertEquals(11000L, RowlessEnd.quietMs(Int.box(10000)))
  }
}
