package org.apache.spark.barograph.shuffle

import java.nio.ByteBuffer
import java.security.{MessageDigest, SecureRandom}
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import scala.util.control.NonFatal

import org.apache.spark.SparkException
import org.apache.spark.network.client.TransportClient

/** Both ends of a connection: a proof for one connection is no use for another. writer: as it is registered. */
final case class Parties(shuffleId: Int, writer: Int, reader: Int)

/**
 * How the two ends of a connection prove to each other that they have the application's key. The reader asks with a
 * random number; the writer answers with its own random number and a keyed hash (HMAC) of both; the reader shows a
 * keyed hash of both. The two hashes differ by a label, so that none can be sent back to its maker.
 *
 * Only ends are proven: rows are not encrypted.
 */
object Proof {
  val NonceBytes = 16
  private val HashBytes = 32
  private val Mark = 0x42415250 // no type of Spark's messages has this number
  private val Ask: Byte = 1
  private val Show: Byte = 2
  private val TimeoutMs = 30000L
  private val random = new SecureRandom()

  def nonce(): Array[Byte] = {
    val fresh = new Array[Byte](NonceBytes)
    random.nextBytes(fresh)
    fresh
  }

  def ofWriter(key: Array[Byte], parties: Parties, asked: Array[Byte], answered: Array[Byte]): Array[Byte] =
    hash(key, 'w', parties, asked, answered)

  def ofReader(key: Array[Byte], parties: Parties, asked: Array[Byte], answered: Array[Byte]): Array[Byte] =
    hash(key, 'r', parties, asked, answered)

  /** In a time that does not depend on how much of it is right. */
  def same(one: Array[Byte], other: Array[Byte]): Boolean = MessageDigest.isEqual(one, other)

  private def hash(
      key: Array[Byte], label: Char, parties: Parties, asked: Array[Byte], answered: Array[Byte]): Array[Byte] = {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(key, "HmacSHA256"))
    val content = ByteBuffer.allocate(14 + 2 * NonceBytes)
    content.putChar(label).putInt(parties.shuffleId).putInt(parties.writer).putInt(parties.reader)
    mac.doFinal(content.put(asked).put(answered).array())
  }

  def ask(reader: Int, nonce: Array[Byte]): ByteBuffer =
    ByteBuffer.allocate(9 + NonceBytes).putInt(Mark).put(Ask).putInt(reader).put(nonce).flip()

  /** The reader that asks and its random number; None if this is no such message. */
  def askIn(message: ByteBuffer): Option[(Int, Array[Byte])] =
    contentOf(message, Ask, 4 + NonceBytes).map(content => content.getInt() -> bytes(content, NonceBytes))

  def show(hash: Array[Byte]): ByteBuffer = ByteBuffer.allocate(5 + HashBytes).putInt(Mark).put(Show).put(hash).flip()

  def showIn(message: ByteBuffer): Option[Array[Byte]] = contentOf(message, Show, HashBytes).map(bytes(_, HashBytes))

  def answer(nonce: Array[Byte], hash: Array[Byte]): ByteBuffer =
    ByteBuffer.allocate(NonceBytes + HashBytes).put(nonce).put(hash).flip()

  private def contentOf(message: ByteBuffer, kind: Byte, size: Int): Option[ByteBuffer] = {
    val from = message.duplicate()
    if (from.remaining() == 5 + size && from.getInt() == Mark && from.get() == kind) Some(from) else None
  }

  private def bytes(from: ByteBuffer, n: Int): Array[Byte] = {
    val found = new Array[Byte](n)
    from.get(found)
    found
  }

  /**
   * In the reader, on a new connection. admit: called when the writer has proven itself, before it may send rows.
   * Throws if it has not.
   */
  def introduce(client: TransportClient, key: Array[Byte], parties: Parties, admit: () => Unit): Unit = {
    val asked = nonce()
    val answer =
      try client.sendRpcSync(ask(parties.reader, asked), TimeoutMs)
      catch { case NonFatal(e) => throw new SparkException(s"writer ${parties.writer} did not answer", e) }
    val proven = answer.remaining() == NonceBytes + HashBytes && {
      val answered = bytes(answer, NonceBytes)
      same(bytes(answer, HashBytes), ofWriter(key, parties, asked, answered)) && {
        admit()
        client.send(show(ofReader(key, parties, asked, answered)))
        true
      }
    }
    if (!proven) {
      client.close()
      throw new SparkException(s"writer ${parties.writer} of shuffle ${parties.shuffleId} is not of this application")
    }
  }
}
