package org.apache.spark.barograph

import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, SparkPlugin}
import org.apache.spark.barograph.plugin.{DriverHands, ExecutorHands}

/** Enabled by spark.plugins: runs in the driver and in every executor. It reports and follows orders. */
class BarographPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverHands
  override def executorPlugin(): ExecutorPlugin = new ExecutorHands
}
