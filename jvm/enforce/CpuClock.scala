package org.apache.spark.barograph.enforce

import java.lang.management.ManagementFactory

/** The clocks that an allowance reads, by the thread that asks. */
trait CpuClock {
  def nowNs(): Long
  /** CPU time of the calling thread. */
  def cpuNs(): Long
  def wallMs(): Long
  /** How long a thread should work between two looks at its CPU time. */
  def lookNs: Long
}

/** The real ones. */
object CpuClock extends CpuClock {
  private val threads = ManagementFactory.getThreadMXBean
  /** At most this part of a thread's time goes into reading its clock, which is a system call. */
  private val LeastRatio = 200L
  private val LeastLookNs = 1000000L
  private val MostLookNs = 20000000L
  private val Rounds = 5
  private val Calls = 200

  /** Why CPU time cannot be read; empty if it can. */
  val problem: String =
    if (!threads.isCurrentThreadCpuTimeSupported) "this Java does not know the CPU time of a thread"
    else if (!threads.isThreadCpuTimeEnabled) "measuring the CPU time of threads is switched off in this Java"
    else ""

  override def nowNs(): Long = System.nanoTime()
  override def cpuNs(): Long = threads.getCurrentThreadCpuTime
  override def wallMs(): Long = System.currentTimeMillis()

  /** What one reading costs. The best round counts: other threads can only add to it. */
  lazy val costNs: Long = if (problem.nonEmpty) 0L else Seq.fill(Rounds) {
    val startNs = System.nanoTime()
    var i = 0
    while (i < Calls) { cpuNs(); i += 1 }
    (System.nanoTime() - startNs) / Calls
  }.min

  override lazy val lookNs: Long = lookNsFor(costNs)

  private[enforce] def lookNsFor(costNs: Long): Long =
    Math.min(MostLookNs, Math.max(LeastLookNs, costNs * LeastRatio))
}
