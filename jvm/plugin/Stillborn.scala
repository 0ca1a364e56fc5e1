package org.apache.spark.barograph.plugin

/** Executors that ended before their part of the plug-in ran: one without our jar does, as soon as it starts. */
object Stillborn {
  private val Ours = "org.apache.spark.barograph"
  @volatile private var reason = ""

  def reset(): Unit = reason = ""

  /**
   * greeted: whether its part of the plug-in had reported to the driver. Of each such executor the driver hears twice,
   * in any order: from itself, why it ends, and from its worker, with which code. Only the first of both comes here,
   * so a reason that names our classes stays when another executor ends without one.
   */
  def removed(greeted: Boolean, why: String): Unit = if (!greeted && !isTelling(reason)) reason = String.valueOf(why)

  private def isTelling(why: String): Boolean = why.contains(Ours)

  /** One runs: what kept the others from it was not the same for all. */
  def greeted(): Unit = reset()

  /** Why the last one ended, while none has come to run; empty if there was none. */
  def why: String = reason
}
