package org.apache.spark.barograph.plugin

/** Executors that ended before their part of the plug-in ran: one without our jar does, as soon as it starts. */
object Stillborn {
  @volatile private var reason = ""

  def reset(): Unit = reason = ""

  /** greeted: whether its part of the plug-in had reported to the driver. */
  def removed(greeted: Boolean, why: String): Unit = if (!greeted) reason = String.valueOf(why)

  /** One runs: what kept the others from it was not the same for all. */
  def greeted(): Unit = reset()

  /** Why the last one ended, while none has come to run; empty if there was none. */
  def why: String = reason
}
