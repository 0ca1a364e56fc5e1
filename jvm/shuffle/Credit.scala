package org.apache.spark.barograph.shuffle

import java.nio.ByteBuffer
import java.util.concurrent.atomic.AtomicLongArray
import java.util.concurrent.locks.LockSupport

import scala.util.Try

import io.netty.buffer.Unpooled

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.barograph.telemetry.Meter
import org.apache.spark.network.client.{RpcResponseCallback, TransportClient}
import org.apache.spark.network.shuffle.streaming.{CreditControlMessage, StreamingShuffleMessage}
import org.apache.spark.shuffle.streaming.StreamingShuffleWriter
import org.apache.spark.shuffle.streaming.barograph.StreamingInternals
import org.apache.spark.util.ErrorNotifier

/**
 * Bounds the queue in front of an instance in time. Bytes cannot do that: a quarter of a megabyte is a millisecond for
 * one operator and a minute for another, and a cut must wait until the queue is empty. So each receiver grants its
 * senders together at most as many rows as it executes in that time at its present rate ([[CreditPool]]), and grants
 * more as it takes them; a sender without credit asks for it and waits, and the backlog stays at the source.
 *
 * A grant is a message of Spark's protocol whose number Spark's own writer ignores. Our numbers are negative, so that
 * they cannot be mistaken for Spark's. Spark's reader accepts no such message; a sender asks with a message of no rows,
 * which Spark's own writer never sends.
 */
object Credit {
  /** The longest queue in front of an instance, in milliseconds; 0 is no bound. */
  val Setting = "spark.barograph.inFlightMs"
  val DefaultMs = 200L

  /** A receiver's first message: it grants credit to senders that ask. */
  val Ready: Int = Int.MinValue + 1
  /** A receiver's last message: it has taken all rows of this sender and will grant no more. */
  val Enough: Int = Int.MinValue
  /**
   * A sender is woken by a grant. It looks for anything else, such as a failure, after this time, and at last eight
   * times as rarely: senders of slow receivers would otherwise spend a per cent of a core each on looking.
   */
  private val CheckNs = 2000000L
  private val MostDoublings = 3
  /** How long half-filled buffers wait while receivers are behind: rows wait anyway, and full buffers cost less CPU. */
  private val PressedMs = 50L
  /** While buffers are held back, the clock is read before one row in so many. */
  private val RowsPerLook = 8

  def of(
      shuffleId: Int, receivers: Int, task: TaskContext, errors: ErrorNotifier, key: Array[Byte], meter: Meter)
      : Credit = {
    // Spark makes the writer with its handler, and the handler with a call into the writer.
    lazy val credit: Credit = new Credit(
      (receiver, last) => StreamingInternals.acknowledged(credit.writer, receiver, last),
      shuffleId, task.partitionId(), receivers, task, errors, key, meter,
      SparkEnv.get.conf.getLong("spark.shuffle.streaming.networkBufferMaxWaitTimeMs", 50L))
    credit
  }

  /**
   * The grant in a message. None for a message of Spark's own, and for one that cannot be decoded or names a receiver
   * that does not exist.
   */
  private[barograph] def grantIn(message: ByteBuffer, receivers: Int): Option[CreditControlMessage] =
    Try(decoded(message)).toOption.collect {
      case grant: CreditControlMessage
        if grant.numMessages < 0 && grant.shuffleReaderId >= 0 && grant.shuffleReaderId < receivers => grant
    }

  private def decoded(message: ByteBuffer): StreamingShuffleMessage = {
    val buffer = Unpooled.wrappedBuffer(message)
    try StreamingShuffleMessage.decode(buffer) finally buffer.release()
  }

  def targetNs: Long = SparkEnv.get.conf.getLong(Setting, DefaultMs) * 1000000L
}

/**
 * The sender's side: how many rows, counted from the epoch's start, each receiver lets it send. It is the handler of
 * the writer's incoming messages. calmMs: how long half-filled buffers wait by Spark's own setting.
 */
class Credit private[barograph] (
    acknowledged: (Int, Long) => Unit, shuffleId: Int, writerId: Int, receivers: Int, task: TaskContext,
    errors: ErrorNotifier, key: Array[Byte], meter: Meter, calmMs: Long)
  extends Guard(acknowledged, shuffleId, writerId, receivers, task, errors, key) {

  /** Set before the first row: the writer's constructor needs its handler. */
  @volatile var writer: StreamingShuffleWriter[_, _] = _

  private val granted = new AtomicLongArray(receivers)
  // The sender's own copy: it reads the shared one only when this is used up.
  private val seen = new Array[Long](receivers)
  private val ready, enough = new AtomicLongArray(receivers)
  @volatile private var waiting: Thread = _
  // Only the sender's thread uses these. pressed: receivers are behind, and buffers are held back.
  private val pressure = new Pressure
  private var pressed = false
  private var rowsUntilLook = Credit.RowsPerLook

  // A broken message must fail this task, with its reason: a grant that is lost would let it wait for ever. Spark's
  // handler does that with whatever it cannot use.
  override protected def fromReader(
      reader: Int, client: TransportClient, message: ByteBuffer, callback: RpcResponseCallback): Unit =
    Credit.grantIn(message.duplicate(), receivers) match {
      case Some(grant) if grant.shuffleReaderId == reader =>
        grant.numMessages match {
          case Credit.Ready => ready.set(reader, 1L)
          case Credit.Enough => enough.set(reader, 1L)
          case rows => granted.addAndGet(reader, -rows.toLong)
        }
        val thread = waiting
        if (thread != null) LockSupport.unpark(thread)
      case _ => super.fromReader(reader, client, message, callback)
    }

  /** Rows that the receiver has let this sender send. */
  private[barograph] def grantedTo(receiver: Int): Long = granted.get(receiver)

  /** Called by the sender's thread before each row. sent: rows sent to this receiver so far. */
  def await(receiver: Int, sent: Long): Unit =
    if (sent < seen(receiver)) {
      if (pressed) { rowsUntilLook -= 1; if (rowsUntilLook <= 0) judge(System.nanoTime()) }
    } else {
      seen(receiver) = granted.get(receiver)
      if (sent >= seen(receiver)) awaitGrant(receiver, sent)
    }

  private def awaitGrant(receiver: Int, sent: Long): Unit = {
    meter.blockedBegins()
    waiting = Thread.currentThread()
    val sinceNs = System.nanoTime()
    // A receiver that has granted nothing yet is starting, not behind.
    val starting = granted.get(receiver) == 0L
    var asked = false
    try {
      var turns = 0
      while (sent >= granted.get(receiver)) {
        if (!asked && ready.get(receiver) == 1L) {
          asked = true
          ask(receiver)
        }
        pause(Credit.CheckNs << Math.min(turns, Credit.MostDoublings))
        turns += 1
        // Other receivers may be waiting for rows that are still in our buffers.
        if (turns == 1 && sent >= granted.get(receiver)) flush()
      }
    } finally { waiting = null; meter.blockedEnds() }
    seen(receiver) = granted.get(receiver)
    val nowNs = System.nanoTime()
    if (starting) pressure.restart(nowNs)
    else {
      pressure.waited(nowNs - sinceNs)
      judge(nowNs)
    }
  }

  private[barograph] def ask(receiver: Int): Unit = StreamingInternals.ask(writer, writerId, receiver)

  /** Send half-filled buffers. */
  private[barograph] def flush(): Unit = StreamingInternals.flush(writer)

  private def judge(nowNs: Long): Unit = {
    rowsUntilLook = Credit.RowsPerLook
    val behind = pressure.behindBy(nowNs)
    if (behind != pressed) press(behind)
  }

  /**
   * After the last row: wait until every receiver has taken all rows, or has closed. If a writer closed earlier, grants
   * would be unread, the system would reset the connection instead of closing it, and the receiver would see a failure.
   */
  def awaitEnough(): Unit = {
    waiting = Thread.currentThread()
    try while (!(0 until receivers).forall(hasEnough)) pause(Credit.CheckNs) finally waiting = null
  }

  private def hasEnough(receiver: Int): Boolean = enough.get(receiver) == 1L || {
    val client = futureClients(receiver)
    client.isDone && !client.isCompletedExceptionally && !client.join().isActive
  }

  private def press(on: Boolean): Unit = {
    pressed = on
    StreamingInternals.flushEvery(writer, if (on) Math.max(calmMs, Credit.PressedMs) else calmMs)
  }

  private def pause(ns: Long): Unit = {
    LockSupport.parkNanos(ns)
    task.killTaskIfInterrupted()
    task.getTaskFailure.foreach(throw _)
    errors.throwErrorIfExists()
  }
}
