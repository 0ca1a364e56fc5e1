package org.apache.spark.barograph.testing

import org.apache.spark.SparkEnv

/**
 * Changes a setting of a running executor. Spark reads the settings of its streaming shuffle again for every reader and
 * writer, so that two settings can be compared in one warm process; two processes differ more by chance than by
 * settings.
 */
object Dial {
  /** Called in a task; returns the executor it ran in. */
  def set(key: String, value: String): String = {
    SparkEnv.get.conf.set(key, value)
    SparkEnv.get.executorId
  }
}
