package org.apache.spark.barograph.orders

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class SharesTest {
  @Test def anExecutorKnowsHowManyShareItsQuotaByTheLatestOrders(): Unit = {
    val orders = Orders(1L, Map.empty, Set.empty, Map.empty, sharers = Map("1" -> 2, "2" -> 2))
    Shares.take(orders)
    try assertEquals(Seq(2, 2, 1), Seq("1", "2", "3").map(Shares.sharers))
    finally Shares.take(orders.copy(sharers = Map.empty))
    assertEquals(1, Shares.sharers("1"))
  }
}
