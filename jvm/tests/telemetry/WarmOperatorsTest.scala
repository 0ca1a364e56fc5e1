package org.apache.spark.barograph.telemetry

import org.apache.spark.barograph.enforce.Allowance
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class WarmOperatorsTest {
  private val (long, short) = (Allowance.BeginningNs, Allowance.ShortBeginningNs)

  @Test def anOperatorHasAShortBeginningOnceItHasRunInThisQueryRun(): Unit = {
    val warm = new WarmOperators
    assertEquals(long, warm.beginningNs("run", "split"))
    warm.ran("run", "split", long, 1L)
    assertEquals(short, warm.beginningNs("run", "split"))
    assertEquals(long, warm.beginningNs("run", "count"))
    assertEquals(long, warm.beginningNs("another-run", "split"), "it may have other code")
  }

  @Test def oneThatEndedAtOnceOrSawNoRowIsNotWarm(): Unit = {
    val warm = new WarmOperators
    warm.ran("run", "split", long - 1L, 1000L)
    warm.ran("run", "split", 100L * long, 0L)
    assertEquals(long, warm.beginningNs("run", "split"))
  }

  @Test def theLatestAreRemembered(): Unit = {
    val warm = new WarmOperators(2)
    Seq("a", "b", "a", "c").foreach(warm.ran("run", _, long, 1L))
    assertEquals(Seq(short, long, short), Seq("a", "b", "c").map(warm.beginningNs("run", _)))
  }
}
