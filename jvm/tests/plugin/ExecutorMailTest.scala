package org.apache.spark.barograph.plugin

import org.apache.spark.barograph.messages.{Messages, Wire}
import org.apache.spark.barograph.orders.{Cuts, Orders}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class ExecutorMailTest {
  private val report = Array[Byte](1, 2, 3)
  private def answer(question: Array[Byte]): Array[Byte] =
    ExecutorMail.answer(question, heard => if (heard) report else report.reverse)

  @Test def ordersAreTaken(): Unit = {
    ExecutorMail.take(Messages.orders(Orders(Cuts.version + 1, Map("mail-run" -> 6L), Set.empty, Map.empty)))
    assertEquals(6L, Cuts.of("mail-run").epoch)
  }

  @Test def questionsAreAnswered(): Unit = {
    assertArrayEquals(Messages.here, answer(Messages.areYouThere))
    assertArrayEquals(report, answer(Messages.askReport(heard = true)))
    assertArrayEquals(report.reverse, answer(Messages.askReport(heard = false)))
    assertEquals(Nil, Messages.howFarIn(answer(Messages.askHowFar("nothing of it runs here"))))
  }

  @Test def whatCannotBeReadIsDropped(): Unit = {
    val version = Cuts.version
    val broken = Seq(
      Array.emptyByteArray, Array[Byte](Wire.Version), Messages.hello("1"), Messages.askHowFar("a").dropRight(1),
      Array[Byte](99, Wire.AskHowFar, 0, 0), Array[Byte](Wire.Version, Wire.Orders, -1))
    for (message <- broken) {
      val before = Dropped.total
      ExecutorMail.take(message)
      assertArrayEquals(ExecutorMail.NoAnswer, answer(message))
      assertEquals(before + 2, Dropped.total)
    }
    assertEquals(version, Cuts.version)
  }
}
