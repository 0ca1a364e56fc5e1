package org.apache.spark.barograph.orders

import org.apache.spark.barograph.enforce.Capacity
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class SharersTest {
  private def executor(id: String, host: String, group: String, milliCores: Long): ExecutorSeats =
    ExecutorSeats(id, host, 2, 0L, 2, Capacity(group, milliCores, 2000L))

  @Test def executorsOfOneGroupShareItsQuota(): Unit = {
    val found = Sharers.among(Seq(
      executor("1", "h1", "/node 7", 500L), executor("2", "h1", "/node 7", 500L), executor("3", "h1", "/pod 8", 500L),
      executor("4", "h2", "/node 7", 500L)))
    assertEquals(Map("1" -> 2, "2" -> 2), found)
  }

  @Test def onlyWhatChangesIsNews(): Unit = {
    val sharers = new Sharers
    val both = Seq(executor("1", "h1", "/node 7", 500L), executor("2", "h1", "/node 7", 500L))
    assertEquals(Seq(false, true, false, true, false), Seq(both.take(1), both, both, Nil, Nil).map(sharers.changes))
    assertEquals(Map.empty, sharers.now)
  }

  @Test def withoutAQuotaNothingIsShared(): Unit = {
    assertEquals(Map.empty, Sharers.among(Seq(executor("1", "h1", "/", 0L), executor("2", "h1", "/", 0L))))
    assertEquals(Map.empty, Sharers.among(Seq(ExecutorSeats("1", "h1", 2, 0L, 2), ExecutorSeats("2", "h1", 2, 0L, 2))))
  }
}
