package org.apache.spark.barograph.planner

import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Assertions._

class NamesTest {
  /** What a controller takes for white space, which is what Python does. */
  private val whiteSpace: Seq[Int] =
    (0x09 to 0x0d) ++ (0x1c to 0x20) ++ Seq(0x85, 0xa0, 0x1680) ++ (0x2000 to 0x200a) ++
      Seq(0x2028, 0x2029, 0x202f, 0x205f, 0x3000)

  private def named(name: String): String = Stage.operatorName(Stage.NamePrefix + name)

  @Test def anOperatorsNameHasNoCharacterThatAControllerRefuses(): Unit =
    for (refused <- whiteSpace ++ "/=,@".map(_.toInt))
      assertEquals("a_b", named(s"a${refused.toChar}b"), f"U+$refused%04X")

  @Test def anyOtherNameOfAnOperatorIsKept(): Unit =
    for (name <- Seq("split", "über-2", "词数", "a.b:c", "\ud83c\udfbb")) assertEquals(name, named(name))

  @Test def aQueryWithoutANameIsKnownByItsId(): Unit = {
    assertEquals("query-0123abcd", SteerRealTime.topologyName(null, "0123abcd-4567"))
    assertEquals("query-0123abcd", SteerRealTime.topologyName("", "0123abcd-4567"))
    assertEquals("my query", SteerRealTime.topologyName("my query", "0123abcd-4567"))
  }
}
