package org.apache.spark.barograph.testing

import org.apache.spark.barograph.enforce.{Allowance, CpuClock}

/** What it costs an instance to ask whether it may go on, for a bench, with Spark SQL's reflect(). */
object AskCost {
  private val Rounds = 20
  private val Asks = 5000000

  /** Picoseconds for one ask of an instance with a limit that it does not reach; the best round counts. */
  def picoseconds(): Long = {
    val allowance = new Allowance(() => false, CpuClock)
    val begunNs = System.nanoTime()
    while (System.nanoTime() - begunNs < 2L * Allowance.BeginningNs) allowance.waitNs()
    allowance.limit(0.9999999)
    Seq.fill(Rounds) {
      val startNs = System.nanoTime()
      var i = 0
      while (i < Asks) { allowance.waitNs(); i += 1 }
      (System.nanoTime() - startNs) * 1000L / Asks
    }.min
  }
}
