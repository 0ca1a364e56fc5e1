package org.apache.spark.barograph

import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLongArray
import java.util.concurrent.locks.LockSupport

import scala.collection.mutable

import io.netty.buffer.Unpooled

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.network.client.{RpcResponseCallback, TransportClient}
import org.apache.spark.network.shuffle.streaming.{CreditControlMessage, StreamingShuffleMessage}
import org.apache.spark.shuffle.streaming.{StreamingShuffleServerHandler, StreamingShuffleWriter}
import org.apache.spark.shuffle.streaming.barograph.StreamingInternals
import org.apache.spark.util.ErrorNotifier

/**
 * What waits in front of an instance is bounded in time. Bytes cannot do that: a quarter of a megabyte is a millisecond of
 * one operator and a minute of another, and a cut must wait until it is gone. So each receiver grants each of its senders
 * as many rows as it executes in that time at the rate it has now, and grants more as it takes them; a sender without
 * credit waits, and the backlog stays at the source.
 *
 * Grants travel in a message that Spark's protocol already has for this and whose number its own writer ignores. Ours are
 * negative, so that they cannot be taken for Spark's.
 */
object Credit {
  /** Milliseconds that may wait in front of an instance; 0 is no bound. */
  val Setting = "spark.barograph.inFlightMs"
  val DefaultMs = 200L

  /** What a receiver grants before it has executed anything. Few: its rows may be slow. It grants more at once if not. */
  val FirstRows = 16L
  /** Grants in the time of one window: more would cost, fewer would let a receiver run dry. */
  val GrantsPerWindow = 8L
  val FewestRows = 2L
  val MomentNs = 1000000L
  /** A receiver's last word: it has taken all that this sender sent, and says nothing more. */
  val Enough: Int = Int.MinValue
  private val CheckNs = 2000000L
  private val PressedMs = 50L
  private val CalmGrants = 16
  private val StrangerNs = 2000000000L
  val MostRows: Long = 1L << 24

  def of(shuffleId: Int, receivers: Int, task: TaskContext, errors: ErrorNotifier, meter: Meter): Credit = {
    // Spark makes the writer with its handler, and the handler with a call into the writer.
    lazy val credit: Credit = new Credit(
      (receiver, last) => StreamingInternals.acknowledged(credit.writer, receiver, last), shuffleId, receivers, task, errors, meter)
    credit
  }

  def targetNs: Long = SparkEnv.get.conf.getLong(Setting, DefaultMs) * 1000000L
}

/**
 * A sender's side: how many rows, counted from the epoch's start, each receiver lets it send. It is what the writer hears
 * its receivers with.
 */
final class Credit private (
    acknowledged: (Int, Long) => Unit, shuffleId: Int, receivers: Int, task: TaskContext, errors: ErrorNotifier, meter: Meter)
  extends StreamingShuffleServerHandler(acknowledged, shuffleId, receivers, task, errors) {

  /** Set before the first row: the writer needs its handler to be made. */
  @volatile var writer: StreamingShuffleWriter[_, _] = _

  private val granted = new AtomicLongArray(receivers)
  // The sender's own copy: it looks at the shared one only when this is used up.
  private val seen = new Array[Long](receivers)
  private val enough = new AtomicLongArray(receivers)
  @volatile private var waiting: Thread = _
  // Whether receivers are behind. Then nobody waits for a half-filled buffer, and full ones cost less.
  @volatile private var pressed = false
  @volatile private var calmGrants = 0
  private val calmMs = SparkEnv.get.conf.getLong("spark.shuffle.streaming.networkBufferMaxWaitTimeMs", 50L)

  override def receive(client: TransportClient, message: ByteBuffer, callback: RpcResponseCallback): Unit =
    decoded(message.duplicate()) match {
      case grant: CreditControlMessage if grant.numMessages < 0 =>
        if (grant.numMessages == Credit.Enough) enough.set(grant.shuffleReaderId, 1L)
        else {
          granted.addAndGet(grant.shuffleReaderId, -grant.numMessages.toLong)
          calmGrants += 1
          if (pressed && calmGrants > Credit.CalmGrants * receivers) press(false)
        }
        val thread = waiting
        if (thread != null) LockSupport.unpark(thread)
      case _ => super.receive(client, message, callback)
    }

  private def decoded(message: ByteBuffer): StreamingShuffleMessage = {
    val buffer = Unpooled.wrappedBuffer(message)
    try StreamingShuffleMessage.decode(buffer) finally buffer.release()
  }

  /** By the sender's thread, before the row after the first `sent` ones. */
  def await(receiver: Int, sent: Long): Unit = if (sent >= seen(receiver)) {
    seen(receiver) = granted.get(receiver)
    if (sent >= seen(receiver)) {
      meter.blockedBegins()
      waiting = Thread.currentThread()
      try {
        calmGrants = 0
        if (!pressed) press(true)
        val sinceNs = System.nanoTime()
        var turns = 0
        while (sent >= granted.get(receiver)) {
          pause()
          turns += 1
          // What the receiver waits for may be what waits in our buffers.
          if (turns == 1 && sent >= granted.get(receiver)) StreamingInternals.flush(writer)
          // A receiver of ours grants as soon as it is connected. One that does not knows no credit, and is sent all.
          if (granted.get(receiver) == 0L && futureClients(receiver).isDone && System.nanoTime() - sinceNs > Credit.StrangerNs)
            granted.set(receiver, Long.MaxValue / 2)
        }
      } finally { waiting = null; meter.blockedEnds() }
      seen(receiver) = granted.get(receiver)
    }
  }

  /**
   * After the last row: until every receiver has taken all, or has hung up. A writer that went earlier would leave grants
   * unread, the system would then reset the connection instead of closing it, and the receiver would take that for a failure.
   */
  def awaitEnough(): Unit = {
    waiting = Thread.currentThread()
    try while (!(0 until receivers).forall(hasEnough)) pause() finally waiting = null
  }

  private def hasEnough(receiver: Int): Boolean = enough.get(receiver) == 1L || {
    val client = futureClients(receiver)
    client.isDone && !client.isCompletedExceptionally && !client.join().isActive
  }

  private def press(on: Boolean): Unit = {
    pressed = on
    StreamingInternals.flushEvery(writer, if (on) Math.max(calmMs, Credit.PressedMs) else calmMs)
  }

  private def pause(): Unit = {
    LockSupport.parkNanos(Credit.CheckNs)
    task.killTaskIfInterrupted()
    task.getTaskFailure.foreach(throw _)
    errors.throwErrorIfExists()
  }
}

/** A receiver's side. Senders are known by their partition, which is what [[MeteredShuffleManager]] registers them by. */
final class Grants(receiver: Int, targetNs: Long, meter: Meter) {
  private val clients = new ConcurrentHashMap[Int, TransportClient]()
  private val ended = mutable.Set[Int]()
  private var taken, granted, next = Array.emptyLongArray
  // Whose rows are being executed.
  private var from = 0
  // Rows and the time they took, the past fading out over one window.
  private var rows, busyNs = 0.0
  private var rowsSince = 0L
  private var sinceNs = 0L // 0: no row yet; what came before, opening state for one, says nothing about a row's cost
  private var idleThenNs = 0L

  /** By the thread that connects. */
  def connected(sender: Int, client: TransportClient): Unit = synchronized {
    clients.put(sender, client)
    send(sender, client, if (ended(sender)) Credit.Enough else -Credit.FirstRows.toInt)
  }

  /** Nothing more comes from this sender, and all that came has been taken. It may end before it is known here. */
  def finished(sender: Int): Unit = synchronized {
    ended += sender
    val client = clients.get(sender)
    if (client != null) send(sender, client, Credit.Enough)
  }

  def readingFrom(sender: Int): Unit = {
    if (sender >= taken.length) {
      taken = taken.padTo(sender + 1, 0L)
      granted = granted.padTo(sender + 1, Credit.FirstRows)
      next = next.padTo(sender + 1, 1L)
    }
    from = sender
  }

  /** A row goes into the operator. */
  def took(): Unit = {
    val sender = from
    val n = taken(sender) + 1
    taken(sender) = n
    rowsSince += 1
    if (sinceNs == 0L) begin() else if (n >= next(sender)) tell(sender, n)
  }

  private def begin(): Unit = {
    sinceNs = System.nanoTime()
    idleThenNs = meter.idleNsBy(sinceNs)
    rowsSince = 0L // this row's work is yet to be done
  }

  private def tell(sender: Int, n: Long): Unit = {
    val client = clients.get(sender)
    if (client != null) {
      val window = measured()
      val more = n + window - granted(sender)
      if (more > 0) {
        granted(sender) += more
        send(sender, client, -more.toInt)
      }
      next(sender) = n + Math.max(1L, window / Credit.GrantsPerWindow)
    }
  }

  /** Rows for one sender that take the time in flight at the rate of late. */
  private def measured(): Long = {
    val nowNs = System.nanoTime()
    val idleNs = meter.idleNsBy(nowNs)
    val spentNs = Math.max(0L, (nowNs - sinceNs) - (idleNs - idleThenNs))
    val kept = Math.max(0.0, 1.0 - spentNs.toDouble / targetNs)
    rows = rows * kept + rowsSince
    busyNs = busyNs * kept + spentNs
    rowsSince = 0L
    sinceNs = nowNs
    idleThenNs = idleNs
    // A moment says nothing: what is granted too much cannot be taken back.
    if (busyNs < Credit.MomentNs) Credit.FirstRows
    else Math.min(Credit.MostRows, Math.max(Credit.FewestRows, (rows / busyNs * targetNs / clients.size).toLong))
  }

  private def send(sender: Int, client: TransportClient, word: Int): Unit = {
    val message = new CreditControlMessage(sender, receiver, word)
    val buffer = client.getChannel.alloc().compositeBuffer().capacity(message.headerLength())
    message.encode(buffer)
    client.send(buffer) // takes the buffer; a lost connection is noticed by the reader itself
  }
}
