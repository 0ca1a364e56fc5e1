package org.apache.spark.barograph.shuffle

import io.netty.buffer.Unpooled
import io.netty.channel.embedded.EmbeddedChannel

import org.apache.spark.barograph.telemetry.Meter
import org.apache.spark.network.client.{TransportClient, TransportResponseHandler}
import org.apache.spark.network.protocol.OneWayMessage
import org.apache.spark.network.shuffle.streaming.{CreditControlMessage, StreamingShuffleMessage}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

/** The receiver's side over a channel in memory. */
class GrantsTest {
  private final class Sender(val id: Int) {
    private val channel = new EmbeddedChannel()
    val client = new TransportClient(channel, new TransportResponseHandler(channel))

    /** The numbers of the messages that this sender has got since the last call. */
    def heard(): Seq[Int] =
      Iterator.continually(channel.readOutbound[OneWayMessage]()).takeWhile(_ != null).map { message =>
        val grant = StreamingShuffleMessage.decode(Unpooled.wrappedBuffer(message.body().nioByteBuffer()))
          .asInstanceOf[CreditControlMessage]
        assertEquals((id, 6), (grant.shuffleWriterId, grant.shuffleReaderId))
        grant.numMessages
      }.toList
  }

  private val sender = new Sender(3)
  private val grants = new Grants(6, 200000000L, new Meter)

  /** What it was granted since the last call. */
  private def granted(to: Sender): Long = {
    val words = to.heard()
    assertTrue(words.forall(w => w < 0 && w != Credit.Enough && w != Credit.Ready), s"$words")
    -words.map(_.toLong).sum
  }

  private def connect(senders: Sender*): Unit = for (s <- senders) {
    grants.connected(s.id, s.client)
    assertEquals(Seq(Credit.Ready), s.heard())
  }

  @Test def aSenderIsToldToAskWhenItConnects(): Unit = connect(sender)

  @Test def aSenderThatAsksIsGrantedARow(): Unit = {
    connect(sender)
    grants.asks(3)
    assertEquals(1L, granted(sender))
  }

  @Test def aSenderIsToldWhenAllItsRowsAreTaken(): Unit = {
    connect(sender)
    grants.finished(3)
    assertEquals(Seq(Credit.Enough), sender.heard())
  }

  @Test def aSenderThatEndedBeforeItConnectedIsToldThen(): Unit = {
    grants.finished(3)
    grants.connected(3, sender.client)
    assertEquals(Seq(Credit.Enough), sender.heard())
  }

  @Test def sendersThatAskWhenTheyHaveNoneGetMoreWithEveryRowThatIsTaken(): Unit = {
    val other = new Sender(1)
    connect(sender, other)
    var left = Map(3 -> 0L, 1 -> 0L)
    for (s <- Seq(3, 1)) grants.asks(s)
    for (turn <- 0 until 2000) {
      for (s <- Seq(sender, other)) left += s.id -> (left(s.id) + granted(s))
      val from = left.maxBy(_._2)._1
      assertTrue(left(from) > 0L, s"no sender has credit in turn $turn")
      grants.readingFrom(from)
      grants.took()
      left += from -> (left(from) - 1)
      if (left(from) == 0L) grants.asks(from)
    }
  }

  @Test def aReceiverThatStaysIdleGrantsThoughAnotherSenderHoldsTheCredit(): Unit = {
    val other = new Sender(1)
    connect(sender, other)
    grants.asks(3)
    grants.asks(1)
    assertEquals(Seq(1L, 0L), Seq(granted(sender), granted(other)))
    grants.ranDry()
    grants.stillDry()
    assertEquals(Seq(0L, 1L), Seq(granted(sender), granted(other)))
  }
}
