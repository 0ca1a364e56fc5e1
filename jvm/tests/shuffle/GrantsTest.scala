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

  @Test def aSenderGetsAFirstGrantWhenItConnects(): Unit = {
    grants.connected(3, sender.client)
    assertEquals(Seq(-16), sender.heard())
  }

  @Test def aSenderIsToldWhenAllItsRowsAreTaken(): Unit = {
    grants.connected(3, sender.client)
    sender.heard()
    grants.finished(3)
    assertEquals(Seq(Credit.Enough), sender.heard())
  }

  @Test def aSenderThatEndedBeforeItConnectedIsToldThen(): Unit = {
    grants.finished(3)
    grants.connected(3, sender.client)
    assertEquals(Seq(Credit.Enough), sender.heard())
  }

  @Test def aSenderAlwaysHasCreditForMoreThanItsReceiverHasTaken(): Unit = {
    val other = new Sender(1)
    grants.connected(3, sender.client)
    grants.connected(1, other.client)
    var granted = Map(3 -> 0L, 1 -> 0L)
    var taken = Map(3 -> 0L, 1 -> 0L)
    for (turn <- 0 until 2000) {
      val from = if (turn % 3 == 0) other else sender
      grants.readingFrom(from.id)
      grants.took()
      taken += from.id -> (taken(from.id) + 1)
      for (s <- Seq(sender, other); words = s.heard()) {
        assertTrue(words.forall(_ < 0))
        granted += s.id -> (granted(s.id) - words.map(_.toLong).sum)
        assertTrue(granted(s.id) > taken(s.id), s"sender ${s.id} in turn $turn")
      }
    }
  }

  @Test def rowsOfASenderThatIsNotConnectedAreCountedUntilItIs(): Unit = {
    grants.readingFrom(3)
    for (_ <- 0 until 10) grants.took()
    grants.connected(3, sender.client)
    assertEquals(Seq(-16), sender.heard())
    grants.took()
    assertTrue(sender.heard().sum < 0, "the next row makes up for the rows that were taken")
  }
}
