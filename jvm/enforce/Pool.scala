package org.apache.spark.barograph.enforce

/**
 * The CPU of all limited instances of an executor together, where its control group has a quota: without a reserve they
 * could use that up, and the kernel would stop the whole JVM, network and garbage collection too, until the next
 * period. While they have used more than that, instances above their share wait; an instance within its share does not.
 */
final class Pool {
  @volatile private var cores = Allowance.Free
  private var tokensNs = 0.0
  private var thenNs = 0L

  /** The most that all may use together from now on; Free: there is no quota. */
  def limit(most: Double): Unit = cores = most

  def isBounded: Boolean = cores != Allowance.Free

  /** An instance has used so much more. Returns for how long (ns) instances above their share must wait now. */
  def waitNs(nowNs: Long, usedNs: Long): Long = synchronized {
    val most = cores
    val worthwhileNs = Math.max(most * Pool.WorthwhileNs, Bucket.LeastWorkNs.toDouble)
    val mostNs = Math.max(most * Pool.MostSavedNs, worthwhileNs)
    val filledNs = Math.min(mostNs, tokensNs + Math.max(0L, nowNs - thenNs) * most)
    tokensNs = Math.max(filledNs - usedNs, -most * Pool.MostOwedNs)
    thenNs = Math.max(thenNs, nowNs)
    // Waking up costs CPU too. If they waited only for what is missing, several that wait would use up all that is
    // left by waking.
    if (tokensNs >= 0.0 || most == Allowance.Free) 0L else ((worthwhileNs - tokensNs) / most).toLong + 1L
  }
}

object Pool {
  /** Of this executor. */
  val here = new Pool
  /** Half a period of a quota: more could be used up within one. */
  private val MostSavedNs = 10000000L
  private val WorthwhileNs = 2000000L
  /** A longer debt would protect nothing: the kernel has stopped the JVM for it before this, in its own period. */
  private val MostOwedNs = 100000000L
  /** The part of a quota that is not for instances. */
  val Reserve = 0.05
}
