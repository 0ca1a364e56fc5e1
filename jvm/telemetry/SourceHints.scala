package org.apache.spark.barograph.telemetry

/**
 * An input partition of a source that knows which rows are due, read or not. Rows are counted from the first of the
 * partition; startMs is when the load starts, in milliseconds since 1970, and names the load: it does not change over
 * epochs and restarts. start: the first row that this epoch reads.
 */
trait DueRows {
  def startMs: Long
  def start: Long

  /** How many rows are due by then. */
  def dueRows(nowMs: Long): Long
}

/** A reader that knows when it waits for rows, and tells the meter. Calls of other readers are timed one by one. */
trait TimesItsWaits {
  /** Null for none. */
  var meter: Meter = _
}
