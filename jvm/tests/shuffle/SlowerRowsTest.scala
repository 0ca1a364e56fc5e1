package org.apache.spark.barograph.shuffle

import scala.collection.mutable

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

/**
 * One receiver and its senders in simulated time. A message takes `wayNs`. Senders have as many rows as they may send,
 * or one in every `everyNs`. The queue is what was sent and not yet taken; its time is what it costs to execute.
 */
final class OneReceiver(senders: Int, wayNs: Long, costNs: Long => Long, everyNs: Long = 0L) {
  private sealed trait Event
  private case class Asks(sender: Int) extends Event
  private case class Given(sender: Int, rows: Long) extends Event
  private case class Arrives(sender: Int) extends Event
  private case class Due(sender: Int) extends Event
  private case object Idle extends Event
  private case object Done extends Event

  private var nowNs, sequence, idleNs, idleSinceNs = 0L
  private val events = mutable.PriorityQueue[(Long, Long, Event)]()(Ordering.by(e => (-e._1, -e._2)))
  private val credit, waitingRows = new Array[Long](senders)
  private val asked = new Array[Boolean](senders)
  private val queue = mutable.Queue[Int]()
  private var onTheWay = 0L
  private var working = false
  var executed, messages = 0L
  var longestNs = 0L

  private val pool = new CreditPool(200000000L, (sender, rows) => { messages += 1; at(wayNs, Given(sender, rows)) })

  private def at(afterNs: Long, event: Event): Unit = { sequence += 1; events += ((nowNs + afterNs, sequence, event)) }

  def run(untilNs: Long): this.type = {
    if (nowNs == 0L) {
      nowNs = 1L
      idleSinceNs = 1L
      for (s <- 0 until senders) { pool.joined(s); at(s * everyNs / senders, Due(s)) }
      at(10000000L, Idle)
    }
    while (events.head._1 <= untilNs) {
      val (whenNs, _, event) = events.dequeue()
      nowNs = whenNs
      happens(event)
      longestNs = Math.max(longestNs, (queue.size + onTheWay) * costNs(nowNs))
    }
    nowNs = untilNs
    this
  }

  private def happens(event: Event): Unit = event match {
    case Asks(s) => pool.asks(s)
    case Given(s, rows) => credit(s) += rows; asked(s) = false; send(s)
    case Due(s) =>
      waitingRows(s) += (if (everyNs == 0L) Long.MaxValue / 2 else 1L)
      if (everyNs > 0L) at(everyNs, Due(s))
      send(s)
    case Arrives(s) =>
      onTheWay -= 1
      queue += s
      if (!working) { idleNs += nowNs - idleSinceNs; take() }
    case Done => if (queue.nonEmpty) take() else { working = false; idleSinceNs = nowNs; pool.ranDry() }
    case Idle =>
      if (!working && nowNs - idleSinceNs >= 10000000L) pool.stillDry()
      at(10000000L, Idle)
  }

  private def send(s: Int): Unit = {
    while (credit(s) > 0L && waitingRows(s) > 0L) {
      credit(s) -= 1
      waitingRows(s) -= 1
      onTheWay += 1
      at(wayNs, Arrives(s))
    }
    if (waitingRows(s) > 0L && !asked(s)) { asked(s) = true; messages += 1; at(wayNs, Asks(s)) }
  }

  private def take(): Unit = {
    val s = queue.dequeue()
    working = true
    executed += 1
    pool.readingFrom(s)
    if (pool.took(s)) { if (pool.begun) pool.share(s, nowNs, idleNs) else pool.begin(nowNs, idleNs) }
    at(costNs(nowNs), Done)
  }
}

class SlowerRowsTest {
  private val ms = 1000000L
  private val targetNs = 200 * ms

  @Test def sixteenSendersOfSlowRowsDoNotAddUp(): Unit = {
    val found = new OneReceiver(16, ms, _ => 400 * ms).run(60000 * ms)
    assertTrue(found.longestNs <= 800 * ms, s"${found.longestNs / ms} ms")
    assertTrue(found.executed >= 149, s"${found.executed} of 150 rows")
  }

  @Test def aRowThatBecomesAHundredTimesSlowerLeavesAShortQueue(): Unit =
    for (senders <- Seq(1, 2, 16); everyNs <- Seq(0L, senders * ms / 25)) {
      // 20 microseconds, then 2 milliseconds. Overload, and half load.
      val found = new OneReceiver(senders, ms, now => if (now < 2500 * ms) ms / 50 else 2 * ms, everyNs)
      found.run(2500 * ms - 1)
      found.longestNs = 0L
      found.run(5000 * ms)
      assertTrue(found.longestNs <= 10 * targetNs, s"$senders senders, each $everyNs ns: ${found.longestNs / ms} ms")
    }

  @Test def noReceiverWaitsWhileSendersHaveRows(): Unit =
    for (senders <- Seq(1, 16); costNs <- Seq(20000L, ms, 20 * ms); wayNs <- Seq(ms / 5, ms, 10 * ms)) {
      val found = new OneReceiver(senders, wayNs, _ => costNs)
      val before = found.run(500 * ms).executed
      val ratio = (found.run(2500 * ms).executed - before) * costNs / (2000.0 * ms)
      assertTrue(ratio > 0.97, f"$senders senders, ${costNs / 1000} us a row, ${wayNs / 1000} us away: $ratio%.3f")
    }

  @Test def manySendersCostNoMoreMessagesThanFew(): Unit = {
    def messages(senders: Int): Long = new OneReceiver(senders, ms / 5, _ => 20000L).run(1000 * ms).messages
    val few = messages(2)
    assertTrue(messages(16) <= 2 * few, s"${messages(16)} and $few")
  }
}
