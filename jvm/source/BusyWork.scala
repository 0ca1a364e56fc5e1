package org.apache.spark.barograph.source

import org.apache.spark.barograph.telemetry.Lives

/** Work of a known cost, for measurements: called for each row with Spark SQL's reflect(). */
object BusyWork {
  /** Keep the thread's core busy for so many microseconds of its own CPU time; returns that number. */
  def spin(micros: Int): Int = {
    // The CPU clock of the thread, not wall time: other load on the core must not make a row cheaper.
    val untilNs = Lives.threads.getCurrentThreadCpuTime + micros * 1000L
    while (Lives.threads.getCurrentThreadCpuTime < untilNs) Thread.onSpinWait()
    micros
  }
}
