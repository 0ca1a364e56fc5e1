package org.apache.spark.barograph

/** Work of a known cost, for measurements: called for each row with Spark SQL's reflect(). */
object Toil {
  /** Keep the thread's core busy for so many microseconds of its own CPU time; answers how many were asked for. */
  def spin(micros: Int): Int = {
    // The clock of the thread and not the wall's: what others do with the core must not make a row cheaper.
    val untilNs = Lives.threads.getCurrentThreadCpuTime + micros * 1000L
    while (Lives.threads.getCurrentThreadCpuTime < untilNs) Thread.onSpinWait()
    micros
  }
}
