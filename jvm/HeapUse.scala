package org.apache.spark.barograph

import org.apache.spark.SparkEnv

/** What this process's heap holds after a collection. Asked for by name, from a query's `reflect`, by who looks for leaks. */
object HeapUse {
  private val KeptMs = 10000L // all tasks of one question get one answer
  private var takenMs = 0L
  private var bytes = 0L

  /** ``executor bytes``. */
  def afterCollection(): String = synchronized {
    val now = System.currentTimeMillis()
    if (now - takenMs > KeptMs) {
      System.gc()
      bytes = Runtime.getRuntime.totalMemory() - Runtime.getRuntime.freeMemory()
      takenMs = now
    }
    s"${SparkEnv.get.executorId} $bytes"
  }
}
