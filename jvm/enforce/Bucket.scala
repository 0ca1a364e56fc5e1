package org.apache.spark.barograph.enforce

/**
 * A token bucket of CPU time. It fills with the limit's part of the time that passes and empties by the CPU that its
 * thread uses. A thread may use what it has saved, at most `MostSavedNs` at its limit, and may overdraw it, because it
 * is only asked between rows; then it waits until that is paid back. Has no clock. Used by one thread.
 */
final class Bucket {
  private var tokensNs = 0.0
  private var thenNs, thenCpuNs = 0L
  private var begun, waits = false

  /** From the next call on nothing is saved or owed. */
  def forget(): Unit = begun = false

  /** For how long (ns) its thread must wait now; 0: it may go on. cores: its limit. cpuNs: what it has used so far. */
  def waitNs(nowNs: Long, cpuNs: Long, cores: Double): Long = {
    val mostNs = cores * Bucket.MostSavedNs
    if (!begun) {
      begun = true
      waits = false
      tokensNs = mostNs
    } else tokensNs = Math.min(mostNs, tokensNs + (nowNs - thenNs) * cores) - (cpuNs - thenCpuNs)
    thenNs = nowNs
    thenCpuNs = cpuNs
    // Many short waits would cost more than they spread: once it waits, it waits for a part of a period more.
    val enoughNs = if (waits) cores * Bucket.WorthwhileNs else 0.0
    waits = tokensNs < enoughNs
    if (waits) ((cores * Bucket.WorthwhileNs - tokensNs) / cores).toLong + 1L else 0L
  }
}

object Bucket {
  /** As a control group with a period of 20 ms, which may save as much again. */
  val MostSavedNs = 40000000L
  val WorthwhileNs = 5000000L
}
