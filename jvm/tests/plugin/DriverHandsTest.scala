package org.apache.spark.barograph.plugin

import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.orders.Ledger
import org.apache.spark.barograph.telemetry.ProcessUse
import org.junit.jupiter.api.{BeforeEach, Test}
import org.junit.jupiter.api.Assertions._

class DriverHandsTest {
  private val driver = new DriverHands

  @BeforeEach def forget(): Unit = {
    Ledger.reset()
    Mailboxes.reset()
  }

  private def report(heard: Long): Array[Byte] = Messages.report(Report("1", heard, Nil, ProcessUse(1L, 2L)))

  @Test def anExecutorThatIsBehindGetsTheOrders(): Unit = {
    Ledger.rest(Set("quiet"))
    driver.receive(report(Ledger.current.version - 1)) match {
      case orders: Array[Byte] => assertEquals(Ledger.current, Messages.ordersIn(orders))
      case other => fail(s"the answer is $other")
    }
  }

  @Test def anExecutorThatHasTheOrdersGetsNothing(): Unit = assertNull(driver.receive(report(Ledger.current.version)))

  @Test def whatCannotBeReadIsDropped(): Unit = {
    val broken = Seq[AnyRef](
      "text", Array.emptyByteArray, report(0L).dropRight(1), report(0L).updated(0, 99.toByte), Messages.hello("1"),
      Array[AnyRef](), Array[AnyRef](Messages.hello("1"), "no mailbox"))
    for (message <- broken) {
      val before = Dropped.total
      assertNull(driver.receive(message))
      assertEquals(before + 1, Dropped.total)
    }
    assertEquals(Map.empty, Mailboxes.all)
  }
}
