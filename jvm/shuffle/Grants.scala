package org.apache.spark.barograph.shuffle

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.barograph.telemetry.Meter
import org.apache.spark.network.client.TransportClient
import org.apache.spark.network.shuffle.streaming.CreditControlMessage

/**
 * The receiver's side of [[Credit]]: sends its senders what [[CreditPool]] gives them. Senders are identified by their
 * partition, under which [[MeteredShuffleManager]] registers them.
 */
final class Grants(receiver: Int, targetNs: Long, meter: Meter) {
  private val clients = new ConcurrentHashMap[Int, TransportClient]()
  private val pool = new CreditPool(targetNs, (sender, rows) => send(sender, -rows.toInt))
  // The sender whose rows are being executed.
  private var from = 0

  /** Called by the thread that connects. */
  def connected(sender: Int, client: TransportClient): Unit = {
    clients.put(sender, client)
    send(sender, if (pool.joined(sender)) Credit.Ready else Credit.Enough)
  }

  /** A sender has no credit and wants to send. Called by the thread of its connection. */
  def asks(sender: Int): Unit = pool.asks(sender)

  /** No more rows come from this sender, and all its rows have been taken. It may end before it has connected. */
  def finished(sender: Int): Unit = {
    pool.finished(sender)
    if (clients.containsKey(sender)) send(sender, Credit.Enough)
  }

  def readingFrom(sender: Int): Unit = { pool.readingFrom(sender); from = sender }

  /** A row goes into the operator. */
  def took(): Unit =
    if (pool.took(from)) {
      val nowNs = System.nanoTime()
      val idleNs = meter.idleNsBy(nowNs)
      if (pool.begun) pool.share(from, nowNs, idleNs) else pool.begin(nowNs, idleNs)
    }

  /** The receiver has no row. */
  def ranDry(): Unit = pool.ranDry()

  /** The receiver has waited for a row, and none came. */
  def stillDry(): Unit = pool.stillDry()

  private def send(sender: Int, word: Int): Unit = {
    val client = clients.get(sender)
    val message = new CreditControlMessage(sender, receiver, word)
    val buffer = client.getChannel.alloc().compositeBuffer().capacity(message.headerLength())
    message.encode(buffer)
    client.send(buffer) // consumes the buffer; the reader itself notices a lost connection
  }
}
