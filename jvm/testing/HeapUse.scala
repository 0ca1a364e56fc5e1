package org.apache.spark.barograph.testing

import org.apache.spark.SparkEnv

/**
 * The size of this process's heap after a garbage collection. Called by tests for leaks, with Spark SQL's reflect().
 */
object HeapUse {
  private val KeptMs = 10000L // all tasks of one query get the same answer
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
