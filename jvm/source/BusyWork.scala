package org.apache.spark.barograph.source

import java.lang.management.ManagementFactory

/** Work of a known cost, for measurements: called for each row with Spark SQL's reflect(). */
object BusyWork {
  private val threads = ManagementFactory.getThreadMXBean

  /** Keep the thread's core busy for so many microseconds of its own CPU time; returns that number. */
  def spin(micros: Int): Int = {
    // The CPU clock of the thread, not wall time: other load on the core must not make a row cheaper.
    val untilNs = threads.getCurrentThreadCpuTime + micros * 1000L
    while (threads.getCurrentThreadCpuTime < untilNs) Thread.onSpinWait()
    micros
  }
}
