package org.apache.spark.barograph.shuffle

import java.nio.ByteBuffer
import java.util.concurrent.TimeUnit

import scala.util.control.NonFatal

import io.netty.buffer.ByteBuf
import io.netty.channel.{ChannelHandlerContext, ChannelInboundHandlerAdapter}
import io.netty.util.AttributeKey

import org.apache.spark.TaskContext
import org.apache.spark.network.client.{RpcResponseCallback, TransportClient}
import org.apache.spark.shuffle.streaming.StreamingShuffleServerHandler
import org.apache.spark.util.ErrorNotifier

/**
 * Serves only readers of this application. Spark's own handler of a writer's connections listens on every interface and
 * gives a partition's rows to whatever claims it first. This one drops every message of a connection until that has
 * proven itself ([[Proof]]); whatever else such a connection does closes it, and harms neither task nor query.
 */
class Guard(
    acknowledged: (Int, Long) => Unit, shuffleId: Int, writerId: Int, receivers: Int, task: TaskContext,
    errors: ErrorNotifier, key: Array[Byte])
  extends StreamingShuffleServerHandler(acknowledged, shuffleId, receivers, task, errors) {

  override def channelActive(client: TransportClient): Unit = {
    val channel = client.getChannel
    channel.pipeline().addFirst(Guard.Limit, new GuestLimit)
    channel.eventLoop().schedule(
      (() => if (Guest.of(client).reader < 0) channel.close()): Runnable, Guard.PatienceS, TimeUnit.SECONDS)
  }

  final override def receive(client: TransportClient, message: ByteBuffer, callback: RpcResponseCallback): Unit = {
    val guest = Guest.of(client)
    if (guest.reader >= 0) fromReader(guest.reader, client, message, callback)
    else
      try meet(guest, client, message, callback)
      catch { case NonFatal(e) => dismiss(client, e) }
  }

  private def meet(
      guest: Guest, client: TransportClient, message: ByteBuffer, callback: RpcResponseCallback): Unit = {
    for ((reader, asked) <- Proof.askIn(message) if reader >= 0 && reader < receivers && callback != null) {
      val answered = Proof.nonce()
      val parties = Parties(shuffleId, writerId, reader)
      guest.claimed = reader
      guest.expected = Proof.ofReader(key, parties, asked, answered)
      callback.onSuccess(Proof.answer(answered, Proof.ofWriter(key, parties, asked, answered)))
    }
    // One attempt for each random number.
    for (shown <- Proof.showIn(message) if guest.expected != null) {
      val expected = guest.expected
      guest.expected = null
      if (!Proof.same(expected, shown)) throw new SecurityException("a wrong proof")
      guest.reader = guest.claimed
      val pipeline = client.getChannel.pipeline()
      if (pipeline.get(Guard.Limit) != null) pipeline.remove(Guard.Limit)
      futureClients(guest.reader).complete(client)
    }
  }

  /** A message of this reader. One that names another reader is broken. */
  protected def fromReader(
      reader: Int, client: TransportClient, message: ByteBuffer, callback: RpcResponseCallback): Unit =
    if (message.remaining() >= Guard.ReaderEnd && message.getInt(message.position() + Guard.ReaderAt) != reader) {
      errors.markError(new IllegalArgumentException(s"reader $reader of shuffle $shuffleId speaks for another"))
    } else super.receive(client, message, callback)

  override def exceptionCaught(cause: Throwable, client: TransportClient): Unit =
    if (Guest.of(client).reader >= 0) super.exceptionCaught(cause, client) else dismiss(client, cause)

  private def dismiss(client: TransportClient, why: Throwable): Unit = {
    logDebug(s"a connection without proof from ${client.getChannel.remoteAddress()} is closed: $why")
    client.getChannel.close()
  }
}

object Guard {
  private[shuffle] val Limit = "barograph-guest-limit"
  /** More than everything that a reader of ours sends until it is proven. */
  private[shuffle] val GuestBytes = 4096L
  private val PatienceS = 30L
  /** Where the reader's number is in each message from readers: after a type, a sequence number and the writer's. */
  private val ReaderAt = 16
  private val ReaderEnd = ReaderAt + 4
}

/** What is known of the other end of a connection. Used by the connection's own thread. */
final class Guest {
  /** Proven; -1: not yet. */
  @volatile var reader: Int = -1
  var claimed: Int = -1
  var expected: Array[Byte] = _
}

object Guest {
  private val Key = AttributeKey.valueOf[Guest]("barograph-guest")

  def of(client: TransportClient): Guest = {
    val attribute = client.getChannel.attr(Key)
    val known = attribute.get()
    if (known != null) known
    else {
      val fresh = new Guest
      val before = attribute.setIfAbsent(fresh)
      if (before != null) before else fresh
    }
  }
}

/**
 * Closes a connection that sends much before it is proven: Spark would collect a message of two gigabytes in memory.
 */
private[shuffle] final class GuestLimit extends ChannelInboundHandlerAdapter {
  private var bytes = 0L

  override def channelRead(context: ChannelHandlerContext, message: AnyRef): Unit = {
    message match {
      case buffer: ByteBuf => bytes += buffer.readableBytes()
      case _ =>
    }
    if (bytes <= Guard.GuestBytes) context.fireChannelRead(message)
    else {
      message match { case buffer: ByteBuf => buffer.release(); case _ => }
      context.close()
    }
  }
}
