package org.apache.spark.barograph.enforce

/**
 * A token bucket of CPU time. It fills with the limit's part of the time that passes and empties by the CPU that its
 * thread uses. A thread may use what it has saved, at most `MostSavedNs` at its limit, and may overdraw it, because it
 * is only asked between rows; then it waits until that is paid back. leastCores: a lower limit counts as this one. Has
 * no clock. Used by one thread.
 */
final class Bucket(leastCores: Double = Bucket.LeastCores) {
  private var tokensNs = 0.0
  private var thenNs, thenCpuNs = 0L
  private var begun, waits = false

  /** From the next call on nothing is saved or owed. */
  def forget(): Unit = begun = false

  /** Nothing is owed. What is saved is kept. */
  def forgive(): Unit = if (tokensNs < 0.0) {
    tokensNs = 0.0
    waits = false
  }

  /** For how long (ns) its thread must wait now; 0: it may go on. limit: in cores. cpuNs: what it has used so far. */
  def waitNs(nowNs: Long, cpuNs: Long, limit: Double): Long = {
    val cores = Math.max(limit, leastCores)
    val worthwhileNs = Math.max(cores * Bucket.WorthwhileNs, Bucket.LeastWorkNs.toDouble)
    val mostNs = Math.max(cores * Bucket.MostSavedNs, worthwhileNs)
    if (!begun) {
      begun = true
      waits = false
      tokensNs = mostNs
    } else tokensNs = Math.min(mostNs, tokensNs + (nowNs - thenNs) * cores) - (cpuNs - thenCpuNs)
    thenNs = nowNs
    thenCpuNs = cpuNs
    // Many short waits would cost more than they spread: once it waits, it waits for a part of a period more. Waking up
    // costs CPU too, so that it never has exactly what it waited for: half of that is enough to go on.
    waits = tokensNs < (if (waits) worthwhileNs / 2 else 0.0)
    if (waits) ((worthwhileNs - tokensNs) / cores).toLong + 1L else 0L
  }
}

object Bucket {
  /** As a control group with a period of 20 ms, which may save as much again. */
  val MostSavedNs = 40000000L
  val WorthwhileNs = 5000000L
  /** To wait and to be woken costs a thread up to a tenth of this, which is a large part of what a low limit leaves. */
  val LeastWorkNs = 1000000L
  /** As a control group, whose least quota is a millisecond in a hundred. */
  val LeastCores = 0.01
}
