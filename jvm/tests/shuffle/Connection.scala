package org.apache.spark.barograph.shuffle

import java.nio.ByteBuffer

import io.netty.channel.embedded.EmbeddedChannel

import org.apache.spark.network.client.{RpcResponseCallback, TransportClient, TransportResponseHandler}

/** A connection to a writer's handler, without a network. */
final class Connection(handler: Guard) {
  val channel = new EmbeddedChannel()
  val client = new TransportClient(channel, new TransportResponseHandler(channel))
  handler.channelActive(client)

  def send(message: ByteBuffer): Unit = handler.receive(client, message, null)

  /** The answer to a question; None if there is none. */
  def ask(question: ByteBuffer): Option[ByteBuffer] = {
    var answer: Option[ByteBuffer] = None
    handler.receive(client, question, new RpcResponseCallback {
      override def onSuccess(response: ByteBuffer): Unit = answer = Some(response)
      override def onFailure(error: Throwable): Unit = throw error
    })
    answer
  }

  /** Ask as this reader, and show a proof made with this key. */
  def introduce(reader: Int, key: Array[Byte], shuffleId: Int = 0, writer: Int = 0): Unit = {
    val asked = Proof.nonce()
    val answer = ask(Proof.ask(reader, asked)).get
    val answered = new Array[Byte](Proof.NonceBytes)
    answer.get(answered)
    send(Proof.show(Proof.ofReader(key, Parties(shuffleId, writer, reader), asked, answered)))
  }
}

object Connection {
  def proven(handler: Guard, reader: Int, key: Array[Byte]): Connection = {
    val made = new Connection(handler)
    made.introduce(reader, key)
    made
  }
}
