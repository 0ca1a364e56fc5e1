package org.apache.spark.barograph.testing

import org.apache.spark.SparkEnv
import org.apache.spark.barograph.orders.Cuts

/** Delays orders to one executor. Called by tests with Spark SQL's reflect(). */
object DelayedOrders {
  /** Milliseconds; 0 ends the delay. Returns the executor it was called on. */
  def on(executor: String, ms: Long): String = {
    val here = SparkEnv.get.executorId
    if (here == executor) Cuts.arriving = if (ms > 0) () => Thread.sleep(ms) else () => ()
    here
  }
}
