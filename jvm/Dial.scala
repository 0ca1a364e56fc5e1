package org.apache.spark.barograph

import org.apache.spark.SparkEnv

/**
 * Turns a setting of an executor that runs. Spark reads those of its streaming shuffle anew for every reader and writer,
 * so that two settings can be compared in one warm process; between two processes chance differs more than settings do.
 */
object Dial {
  /** Called in a task; answers the executor it ran in. */
  def set(key: String, value: String): String = {
    SparkEnv.get.conf.set(key, value)
    SparkEnv.get.executorId
  }
}
