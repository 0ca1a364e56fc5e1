package org.apache.spark.barograph.plugin

import java.io.IOException
import java.net.{ConnectException, InetSocketAddress, Socket, SocketTimeoutException}
import java.util.concurrent.{Executors, TimeUnit}

import org.apache.spark.internal.Logging

/** Another executor, and where it takes connections. */
final case class Peer(executor: String, host: String, port: Int)

/**
 * Whether this executor reaches the others. Rows between two hosts whose connection is lost just wait: neither side is
 * told, and both still reach the driver. So each second a connection to one of the others, in turn, is opened and
 * closed, and to all that could not be reached the last time. Two failures in a row count.
 *
 * A refused connection counts as reached: the host answers, and that its executor is gone is the driver's to see.
 *
 * The driver is asked for the others only now and then, since each question costs it CPU, but at every look while one
 * is not reached: it may be gone.
 */
final class Reach(peers: () => Seq[Peer], reaches: Peer => Boolean = Reach.connects) extends Logging {
  private var turn = 0
  private var known = Seq.empty[Peer]
  private var failures = Map.empty[Peer, Int]
  @volatile private var found = Seq.empty[String]

  /** The executors that this one does not reach, as it is known now. */
  def unreachable: Seq[String] = found

  def look(): Unit = {
    if (turn % Reach.AskedEvery == 0 || failures.nonEmpty || known.isEmpty) known = peers()
    val suspects = failures.keySet.intersect(known.toSet)
    val next = if (known.isEmpty) Nil else Seq(known(turn % known.size))
    turn += 1
    failures = (suspects ++ next).toSeq.map(p => p -> (if (reaches(p)) 0 else failures.getOrElse(p, 0) + 1))
      .filter(_._2 > 0).toMap
    found = failures.filter(_._2 >= Reach.Enough).keys.map(_.executor).toSeq.sorted
  }

  private val clock = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, "barograph-reach")
    thread.setDaemon(true)
    thread
  }

  def start(): Unit = clock.scheduleWithFixedDelay(() => safely(), 1000L, 1000L, TimeUnit.MILLISECONDS)

  def close(): Unit = clock.shutdownNow()

  private def safely(): Unit =
    try look()
    catch {
      // A task that throws is not called again. Logging may fail for the same reason as the look.
      case e: Throwable =>
        try logWarning("the other executors could not be looked for", e) catch { case _: Throwable => () }
    }
}

object Reach {
  private val Enough = 2
  private[plugin] val AskedEvery = 10
  private val TimeoutMs = 2000

  def connects(peer: Peer): Boolean = {
    val socket = new Socket()
    try {
      socket.connect(new InetSocketAddress(peer.host, peer.port), TimeoutMs)
      true
    } catch {
      case refused: ConnectException => String.valueOf(refused.getMessage).contains("refused")
      case _: SocketTimeoutException => false
      case _: IOException => false
    } finally socket.close()
  }
}
