package org.apache.spark.barograph.kafka

/**
 * Offsets at the end of a partition that seem to hold no row, such as the mark of a transaction: `from`, which a reader
 * would read next, up to `until`, where the partition ended before the calls that found none began. emptyNs: how long
 * these calls took in all. A broker may keep back what it has for a while, so only a long time proves it.
 */
final case class RowlessEnd(from: Long, until: Long, emptyNs: Long = 0L) {
  def has(offset: Long): Boolean = from <= offset && offset < until

  /** The first offset from there on that may be a row. */
  def past(offset: Long): Long = if (has(offset)) until else offset
}

object RowlessEnd {
  val none: RowlessEnd = RowlessEnd(-1L, -1L)

  /** How long a broker keeps back what it has, if the reader's options do not say. */
  private val FetchWaitMs = 500L
  /** Besides: for a connection that was lost and comes back, as Kafka's consumers wait at most. */
  private val ReconnectMs = 1000L

  /** How long calls must find none. fetchWait: the reader's option fetch.max.wait.ms, null if it is not set. */
  def quietMs(fetchWait: AnyRef): Long =
    ReconnectMs + Option(fetchWait).flatMap(_.toString.trim.toLongOption).getOrElse(FetchWaitMs)
}
