package org.apache.spark.barograph.shuffle

import scala.collection.mutable

import org.apache.spark.barograph.telemetry.Counter

/**
 * How a receiver shares out the rows that may be on their way to it among its senders. All together get at most what
 * [[GrantWindow]] says, however many they are.
 *
 * A sender has credit of its own for as long as an equal part is at least two rows, and sends without asking. A sender
 * that has used up its credit asks for more; those that ask are served first, in the order in which they asked. A
 * sender that asks again and again gets twice as much each time, up to half of the window, so that many senders cost
 * hardly more messages than one. Where rows are slow, one sender after the other gets a single row.
 *
 * Credit that a sender has and does not use cannot be taken back. Therefore a receiver that waits for rows gives to one
 * that asks also where there is nothing left to give ([[stillDry]]): no sender waits for ever for an idle receiver.
 *
 * Has no clock and no connection. The receiver's thread calls whatever is not said to be called by others.
 * give: sends a sender its credit.
 */
final class CreditPool(targetNs: Long, give: (Int, Long) => Unit) {
  private val window = new GrantWindow(targetNs)
  // Only the receiver's thread uses these. next: rows of this sender after which to look whether it needs more.
  private var taken, next = Array.emptyLongArray
  // Written by the receiver's thread; others may see an older count, which only lets them give less.
  private val takenOfAll = new Counter
  // Guarded by this. dryAt: what a sender had been granted when it asked and nothing was left to give; -1 if none was
  // short since. last: what it was given when it last asked; 0 if it was given more since without asking.
  private var granted, dryAt, last = Array.emptyLongArray
  private val asking = mutable.LinkedHashSet[Int]()
  private val live, ended = mutable.Set[Int]()
  private var grantedToAll = 0L
  private var most = GrantWindow.FewestRows
  // Taken rows at which senders that ask can be served.
  @volatile private var serveAt = Long.MaxValue
  @volatile private var asked = false

  /** Called by the thread that connects. False if no more rows come from this sender. */
  def joined(sender: Int): Boolean = synchronized {
    val more = !ended(sender)
    if (more) { live += sender; known(sender) }
    more
  }

  /** A sender has no credit and wants to send. Called by the thread of its connection. */
  def asks(sender: Int): Unit = synchronized {
    if (live(sender)) {
      asking += sender
      serve()
      // A sender that has never had credit is starting.
      if (asking(sender) && granted(sender) > 0L) { dryAt(sender) = granted(sender); asked = true }
    }
  }

  /** No more rows come from this sender, and all its rows have been taken. It may end before it has joined. */
  def finished(sender: Int): Unit = synchronized {
    ended += sender
    asking -= sender
    if (live.remove(sender)) {
      readingFrom(sender)
      grantedToAll -= granted(sender) - taken(sender)
      granted(sender) = taken(sender)
      dryAt(sender) = -1L
      serve()
    }
  }

  /** Rows of this sender come next. */
  def readingFrom(sender: Int): Unit = if (sender >= taken.length) {
    taken = taken.padTo(sender + 1, 0L)
    next = next.padTo(sender + 1, 1L)
  }

  def begun: Boolean = window.begun
  def begin(nowNs: Long, idleNs: Long): Unit = { window.begin(nowNs, idleNs); synchronized(serve()) }

  /** A row of this sender goes into the operator. True: [[share]] is due. */
  def took(sender: Int): Boolean = {
    val n = taken(sender) + 1
    taken(sender) = n
    takenOfAll.increment()
    if (window.begun) window.took()
    n >= next(sender) || takenOfAll.value >= serveAt
  }

  /** Look again how much there is to give, after a row of this sender. */
  def share(sender: Int, nowNs: Long, idleNs: Long): Unit = {
    val rows = window.rowsAt(nowNs, idleNs)
    synchronized {
      most = rows
      // A sender that knows no credit sends more than it was granted.
      if (live(sender) && taken(sender) > granted(sender)) count(sender, taken(sender) - granted(sender))
      serve()
      top(sender)
    }
  }

  /** The receiver has no row. True if that is for lack of credit; then more is given from now on. */
  def ranDry(): Boolean = asked && synchronized {
    asked = false
    val dry = dryAt.indices.exists(s => dryAt(s) >= 0L && (s >= taken.length || taken(s) <= dryAt(s)))
    java.util.Arrays.fill(dryAt, -1L)
    if (dry) window.ranDry()
    dry
  }

  /** The receiver has waited for a row, and none came. */
  def stillDry(): Unit = if (serveAt != Long.MaxValue) synchronized {
    serve()
    asking.headOption.foreach { sender => grant(sender, Math.max(1L, most / live.size)); serve() }
  }

  private def left: Long = most - (grantedToAll - takenOfAll.value)

  private def serve(): Unit = {
    while (asking.nonEmpty && left >= due(asking.head)) {
      val sender = asking.head
      last(sender) = due(sender)
      grant(sender, last(sender))
    }
    serveAt = if (asking.isEmpty) Long.MaxValue else grantedToAll - most + due(asking.head)
  }

  /** What this sender gets if it asks: an equal part, or twice as much as when it last asked. */
  private def due(sender: Int): Long =
    Math.max(1L, Math.min(most / 2, Math.max(most / live.size, 2 * last(sender))))

  /** Give a sender its equal part before it has to ask. */
  private def top(sender: Int): Unit = {
    val n = taken(sender)
    val part = if (live(sender)) most / live.size else 0L
    val unasked = asking.isEmpty && part >= 2L
    if (unasked) {
      val more = Math.min(n + part - granted(sender), left)
      if (more > 0L) { last(sender) = 0L; grant(sender, more) }
    }
    val had = if (live(sender)) granted(sender) else 0L
    next(sender) = Math.max(n + Math.max(1L, part / 8), if (unasked) had - part / 2 else had)
  }

  private def grant(sender: Int, rows: Long): Unit = {
    asking -= sender
    count(sender, rows)
    give(sender, rows)
  }

  private def count(sender: Int, rows: Long): Unit = { granted(sender) += rows; grantedToAll += rows }

  private def known(sender: Int): Unit = if (sender >= granted.length) {
    granted = granted.padTo(sender + 1, 0L)
    dryAt = dryAt.padTo(sender + 1, -1L)
    last = last.padTo(sender + 1, 0L)
  }
}
