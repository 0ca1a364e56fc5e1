package org.apache.spark.barograph.kafka

import java.util.{Map => JMap}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging

/** Where a partition of a topic ends, as a broker last said. Written by one [[EndOffsetAsker]], read by any thread. */
final class EndOffset {
  /** Below 0: no broker has said it yet. */
  @volatile private[kafka] var end = -1L
  @volatile private[kafka] var first = -1L
  @volatile private[kafka] var atNs = 0L
  /** What is known to hold no row, and what seems to; they outlast the epoch of the reader that found it out. */
  @volatile private[kafka] var rowless, seemsRowless = RowlessEnd.none
  private[kafka] var users = 0 // guarded by the asker, as is the next
  private[kafka] var leftNs = 0L

  private[kafka] def put(value: Long, nowNs: Long): Unit = {
    if (first < 0L) first = value
    if (value < rowless.until) rowless = RowlessEnd.none // the topic was made anew
    atNs = nowNs
    end = value
  }

  private[kafka] def ageMs(nowNs: Long): Long = (nowNs - atNs) / 1000000L
}

/** Asks a broker. Called by one thread; an error other than `isOutage` makes the asker open another. */
trait EndOffsetClient {
  /** Must return or throw within seconds. */
  def ends(partitions: Seq[AnyRef]): Map[AnyRef, Long]
  /** How many partitions the topics of these have, by topic; as of some seconds ago. */
  def sizes(partitions: Seq[AnyRef]): Map[String, Int]
  def isOutage(error: Throwable): Boolean
  def close(): Unit
}

/**
 * Asks for the ends of all partitions that are read here with the same options, again and again, on a thread of its
 * own: a broker that does not answer delays no report and no row, and its figures grow old. A partition that nothing
 * reads any more is asked for a little longer, for afterMs: the next epoch reads it soon. Less often it asks how many
 * partitions the topics have. The thread ends when nothing was read for a while.
 */
final class EndOffsetAsker(
    open: () => EndOffsetClient, ended: EndOffsetAsker => Boolean, everyMs: Long = 400L, lingerMs: Long = 30000L,
    retryMs: Long = 2000L, afterMs: Long = 2000L, sizesMs: Long = 5000L) extends Logging {
  private val partitions = mutable.Map[AnyRef, EndOffset]()
  private var isNew = false
  private var usedNs = System.nanoTime()
  private var isTold = false
  private var sizesNs = usedNs - sizesMs * 1000000L // only of its own thread
  /** By topic; only of those that are read. */
  @volatile private[kafka] var sizes = Map.empty[String, Int]

  private[kafka] val thread = new Thread(() => run(), "barograph-end-offsets")
  thread.setDaemon(true)
  thread.start()

  /** From now on the partition's end is asked for, at once if it is new here or its last figure is old. */
  def watch(partition: AnyRef): EndOffset = synchronized {
    val found = partitions.getOrElseUpdate(partition, new EndOffset)
    if (found.end < 0L || found.ageMs(System.nanoTime()) > everyMs) {
      isNew = true
      notifyAll()
    }
    found.users += 1
    found
  }

  def leave(partition: EndOffset): Unit = synchronized {
    partition.users -= 1
    usedNs = System.nanoTime()
    partition.leftNs = usedNs
  }

  private def run(): Unit = {
    var client: EndOffsetClient = null
    while (!isOver) {
      var restMs = everyMs
      try {
        if (client == null) client = open()
        val wanted = synchronized { isNew = false; partitions.filter(p => isWanted(p._2)).toMap }
        if (wanted.isEmpty) sizes = Map.empty
        else {
          val found = client.ends(wanted.keys.toSeq)
          val nowNs = System.nanoTime()
          for ((partition, end) <- found; at <- wanted.get(partition)) at.put(end, nowNs)
          if (nowNs - sizesNs >= sizesMs * 1000000L) {
            sizesNs = nowNs
            sizes = client.sizes(wanted.keys.toSeq)
          }
          isTold = false
        }
      } catch {
        // Not only exceptions: another version of the client's library may lack a class or a method.
        case e @ (NonFatal(_) | _: LinkageError) =>
          if (!isTold) logWarning("the ends of topics cannot be had, so backlogs are unknown or old", e)
          isTold = true
          if (client == null || !client.isOutage(e)) {
            close(client)
            client = null
            restMs = retryMs
          }
      }
      rest(restMs)
    }
    close(client)
  }

  private def isWanted(partition: EndOffset): Boolean =
    partition.users > 0 || System.nanoTime() - partition.leftNs < afterMs * 1000000L

  private def rest(ms: Long): Unit = synchronized {
    val untilNs = System.nanoTime() + ms * 1000000L
    var leftMs = ms
    while (leftMs > 0L && !(isNew && ms == everyMs)) {
      wait(leftMs)
      leftMs = (untilNs - System.nanoTime()) / 1000000L
    }
  }

  private def isOver: Boolean = {
    val unused = synchronized {
      partitions.values.forall(_.users == 0) && System.nanoTime() - usedNs > lingerMs * 1000000L
    }
    unused && ended(this)
  }

  private[kafka] def isUsed: Boolean = synchronized { partitions.values.exists(_.users > 0) }

  private def close(client: EndOffsetClient): Unit =
    if (client != null) try client.close() catch { case NonFatal(e) => logDebug("a client did not close", e) }
}

/** The askers of this process: one for each set of options with which topics are read. */
object EndOffsets {
  private val askers = mutable.Map[JMap[String, AnyRef], EndOffsetAsker]()

  /** options: as the connector gives them to its own consumer here. Returns the figure, and what to call at the end. */
  def watch(options: JMap[String, AnyRef], partition: AnyRef): (EndOffset, () => Unit) = synchronized {
    val asker = askers.getOrElseUpdate(
      options, new EndOffsetAsker(() => KafkaClient.open(options, partition.getClass.getClassLoader), forget))
    val figure = asker.watch(partition)
    (figure, () => asker.leave(figure))
  }

  /** How many partitions the topics have that are read here. */
  def sizes: Seq[TopicSize] = synchronized {
    for ((options, asker) <- askers.toSeq; (topic, partitions) <- asker.sizes)
      yield TopicSize(Topic(KafkaInput.brokersOf(options), topic), partitions)
  }

  /** False if it has come to be used again. */
  private def forget(asker: EndOffsetAsker): Boolean = synchronized {
    if (!asker.isUsed) askers.filterInPlace((_, kept) => kept ne asker)
    !asker.isUsed
  }
}
