package org.apache.spark.barograph.plugin

import org.junit.jupiter.api.{BeforeEach, Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(60)
class StillbornTest {
  private val Telling = "Unable to create executor due to org.apache.spark.barograph.plugin.ExecutorHands"
  private val Code = "Command exited with code 1"

  @BeforeEach def reset(): Unit = Stillborn.reset()

  @Test def anExecutorThatRanIsNotOne(): Unit = {
    Stillborn.removed(true, Code)
    assertEquals("", Stillborn.why)
  }

  @Test def theReasonThatNamesOurClassesStays(): Unit = {
    Stillborn.removed(false, Code)
    assertEquals(Code, Stillborn.why)
    Stillborn.removed(false, Telling)
    Stillborn.removed(false, Code)
    assertEquals(Telling, Stillborn.why)
  }

  @Test def whenOneRunsNothingIsWrongWithTheOthers(): Unit = {
    Stillborn.removed(false, Telling)
    Stillborn.greeted()
    assertEquals("", Stillborn.why)
  }
}
