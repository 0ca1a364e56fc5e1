package org.apache.spark.barograph.lease

import java.io.IOException

import scala.collection.mutable.ListBuffer

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class TroublesTest {
  private val said = ListBuffer.empty[String]
  private val troubles = new Troubles {
    override protected def say(text: String, because: Option[Throwable]): Unit =
      said += text + because.fold("")(e => s": ${e.getMessage}")
  }
  private def fails(): Unit = throw new IOException("the disk is away")

  @Test def aFailureIsToldOnceAndItsEndToo(): Unit = {
    for (_ <- 1 to 3) troubles.telling("renewing")(fails())
    for (_ <- 1 to 2) troubles.telling("renewing")(())
    troubles.telling("renewing")(fails())
    assertEquals(
      Seq(
        "renewing failed: the disk is away", "renewing works again",
        "renewing failed: the disk is away"),
      said.toSeq)
  }

  @Test def anErrorOfTheJvmIsAFailureToo(): Unit = {
    troubles.telling("renewing")(throw new NoClassDefFoundError("gone"))
    assertEquals(Seq("renewing failed: gone"), said.toSeq)
  }

  @Test def whatWorksIsNotTold(): Unit = {
    troubles.telling("renewing")(())
    assertEquals(Nil, said.toSeq)
  }

  @Test def eachKindOfWorkIsToldOfByItself(): Unit = {
    troubles.telling("renewing")(fails())
    troubles.telling("looking")(fails())
    assertEquals(2, said.size)
  }
}
