package org.apache.spark.barograph.telemetry

import scala.collection.mutable

import org.apache.spark.barograph.enforce.Allowance

/**
 * The operators, by query run, that this executor has worked on for as long as a beginning: their code is loaded and
 * compiled. The next run of a query may have other code. Only the latest are remembered. For any thread.
 */
final class WarmOperators(kept: Int = WarmOperators.Kept) {
  private val known = mutable.LinkedHashSet[(String, String)]()

  /** An instance has ended, so long after its start, and has worked on so many rows. */
  def ran(runId: String, operator: String, forNs: Long, rows: Long): Unit =
    if (forNs >= Allowance.BeginningNs && rows > 0L) synchronized {
      val key = (runId, operator)
      known -= key
      known += key
      if (known.size > kept) known -= known.head
    }

  /** For how long (ns) an instance that starts now has no limit. */
  def beginningNs(runId: String, operator: String): Long = synchronized {
    if (known.contains((runId, operator))) Allowance.ShortBeginningNs else Allowance.BeginningNs
  }
}

object WarmOperators {
  private val Kept = 1000
  /** Of this executor. */
  val here = new WarmOperators
}
