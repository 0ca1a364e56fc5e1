package org.apache.spark.barograph.telemetry

/**
 * What one instance of a source reads, of a source that knows which rows are due, read or not. The input partition of a
 * source may be one; for Kafka there is [[org.apache.spark.barograph.kafka.KafkaInput]]. Rows are counted from any
 * fixed place of the partition, for Kafka by their offsets. The reporter's thread calls it, while the instance runs and
 * after it has ended, and the instance's own thread where that is said: it must answer at once and must not throw.
 */
trait DueRows {
  /**
   * Names what is read, one partition of a source, and is at least 0. It does not change over epochs and restarts, nor
   * if another instance or executor reads it.
   */
  def load: Long

  /** Rows from here on count as arrived; those before it are backlog, or were read earlier. */
  def start: Long

  /** The first row that was not read; read: how many rows the instance has read in this epoch. */
  def position(read: Long): Long

  /** How many rows are due by then; below 0 if that is not known now. */
  def dueRows(nowMs: Long): Long

  /** How much older than usual that answer is. */
  def ageMs: Long = 0L

  /** A call for the next row took so long. By the instance's own thread, after each call of a reader that is timed. */
  def called(found: Boolean, ns: Long): Unit = ()

  /** Whether, by the last figure, no row was there before the one that was just found. Called in the same way. */
  def hadNone(read: Long): Boolean = dueRows(System.currentTimeMillis()) <= position(read)

  /** The instance does not read any more. */
  def close(): Unit = ()
}

object DueRows {
  /** On a busy machine an answer takes that long, and no decision depends on it. */
  val UsualMs = 2000L
  /** A figure that is older says nothing of the present. */
  val ForgottenMs = 60000L
}

/** A reader that knows when it waits for rows, and tells the meter. Calls of other readers are timed one by one. */
trait TimesItsWaits {
  /** Null for none. */
  var meter: Meter = _
}
