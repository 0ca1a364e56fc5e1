package org.apache.spark.barograph.shuffle

import java.nio.ByteBuffer

import scala.collection.mutable

import io.netty.buffer.Unpooled

import org.apache.spark.TaskContext
import org.apache.spark.network.shuffle.streaming.{
  CreditControlMessage, StreamingShuffleMessage, TerminationAckMessage}
import org.apache.spark.util.ErrorNotifier
import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(30)
class GuardTest {
  private val errors = new ErrorNotifier()
  private val key = Array.fill[Byte](32)(7)
  private val acknowledged = mutable.Buffer[Int]()
  private val guard = new Guard((reader, _) => acknowledged += reader, 0, 0, 2, TaskContext.empty(), errors, key)

  private def bytes(message: StreamingShuffleMessage): ByteBuffer = {
    val buffer = Unpooled.compositeBuffer().capacity(message.headerLength())
    message.encode(buffer)
    buffer.nioBuffer(0, message.headerLength())
  }

  private def served(reader: Int): Boolean = guard.futureClients(reader).isDone

  private def nothingHappened(): Unit = {
    assertFalse(served(0) || served(1))
    assertTrue(acknowledged.isEmpty)
    assertTrue(errors.getError().isEmpty)
  }

  @Test def aReaderThatProvesItselfIsServedAndHeard(): Unit = {
    val reader = Connection.proven(guard, 1, key)
    assertSame(reader.client, guard.futureClients(1).join())
    assertFalse(served(0))
    reader.send(bytes(new TerminationAckMessage(0, 1)))
    assertEquals(Seq(1), acknowledged)
    assertTrue(errors.getError().isEmpty)
  }

  @Test def whatSparksOwnReaderSendsIsDroppedUntilThen(): Unit = {
    val stranger = new Connection(guard)
    stranger.send(bytes(new CreditControlMessage(0, 1, 1)))
    stranger.send(bytes(new TerminationAckMessage(0, 1)))
    nothingHappened()
    assertTrue(stranger.channel.isOpen)
    stranger.introduce(1, key)
    assertTrue(served(1))
  }

  @Test def aProofWithAnotherKeyClosesTheConnection(): Unit = {
    val stranger = new Connection(guard)
    stranger.introduce(1, Array.fill[Byte](32)(8))
    nothingHappened()
    assertFalse(stranger.channel.isOpen)
  }

  @Test def aProofIsForOneShuffleOneWriterAndOneReader(): Unit = {
    new Connection(guard).introduce(1, key, shuffleId = 5)
    new Connection(guard).introduce(1, key, writer = 5)
    nothingHappened()
  }

  @Test def aProofIsOfNoUseOnAnotherConnection(): Unit = {
    val (genuine, stranger) = (new Connection(guard), new Connection(guard))
    val asked = Proof.nonce()
    val answered = new Array[Byte](Proof.NonceBytes)
    genuine.ask(Proof.ask(1, asked)).get.get(answered)
    stranger.ask(Proof.ask(1, asked))
    stranger.send(Proof.show(Proof.ofReader(key, Parties(0, 0, 1), asked, answered)))
    nothingHappened()
    genuine.send(Proof.show(Proof.ofReader(key, Parties(0, 0, 1), asked, answered)))
    assertTrue(served(1))
  }

  @Test def theWritersOwnProofCannotBeSentBack(): Unit = {
    val stranger = new Connection(guard)
    val answer = stranger.ask(Proof.ask(1, Proof.nonce())).get
    val hash = new Array[Byte](32)
    answer.position(Proof.NonceBytes).get(hash)
    stranger.send(Proof.show(hash))
    nothingHappened()
  }

  @Test def brokenMessagesAndErrorsOfStrangersHarmNothing(): Unit = {
    val stranger = new Connection(guard)
    Seq(ByteBuffer.allocate(0), ByteBuffer.allocate(3), ByteBuffer.wrap(Array.fill(37)(99.toByte)),
      Proof.ask(2, Proof.nonce()), Proof.ask(-1, Proof.nonce()), Proof.show(new Array[Byte](32)))
      .foreach(stranger.send)
    guard.exceptionCaught(new IllegalArgumentException("a broken frame"), stranger.client)
    nothingHappened()
    assertFalse(stranger.channel.isOpen)
  }

  @Test def anErrorOfAReaderOfOursStillFailsTheTask(): Unit = {
    guard.exceptionCaught(new IllegalArgumentException("lost"), Connection.proven(guard, 0, key).client)
    assertTrue(errors.getError().isDefined)
  }

  @Test def aStrangerThatSendsMuchIsCutOff(): Unit = {
    val stranger = new Connection(guard)
    stranger.channel.writeInbound(Unpooled.wrappedBuffer(new Array[Byte](4000)))
    assertTrue(stranger.channel.isOpen)
    stranger.channel.writeInbound(Unpooled.wrappedBuffer(new Array[Byte](4000)))
    assertFalse(stranger.channel.isOpen)
    val reader = Connection.proven(guard, 0, key)
    reader.channel.writeInbound(Unpooled.wrappedBuffer(new Array[Byte](8000)))
    assertTrue(reader.channel.isOpen)
  }

  @Test def rowsOfAWriterThatHasNotProvenItselfAreRefused(): Unit = {
    val queue = new ProvenQueue
    def rows(writer: Int) =
      new org.apache.spark.network.shuffle.streaming.DataMessage(writer, 0, 0, Unpooled.buffer(0), 0L)
    queue.admit(1)
    queue.put(rows(1))
    assertThrows(classOf[Exception], () => queue.put(rows(2)))
    assertEquals(1, queue.size())
  }
}
