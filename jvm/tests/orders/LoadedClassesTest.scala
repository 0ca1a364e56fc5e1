package org.apache.spark.barograph.orders

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class LoadedClassesTest {
  @Test def namesOfAListing(): Unit = {
    val listing =
      """java.lang.Object/null
        ||--org.example.A/0x00007f1
        ||  |--org.example.B$C/0x00007f1
        ||--org.example.A$$Lambda$14/0x0000000800c03000/0x00007f1
        ||--org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1/0x00007f2
        ||--jdk.proxy2.$Proxy7/0x00007f3
        ||--java.util.AbstractMap/null
        |""".stripMargin
    assertEquals(Seq("org.example.A", "org.example.B$C"), LoadedClasses.namesIn(listing))
  }

  @Test def whatThisProcessHasLoadedCanBeLoadedAgain(): Unit = {
    val names = LoadedClasses.names
    assertTrue(names.contains(getClass.getName), names.size.toString)
    assertTrue(LoadedClasses.load(names, getClass.getClassLoader) > names.size / 2)
  }

  @Test def aClassThatIsNotThereIsLeftOut(): Unit =
    assertEquals(1, LoadedClasses.load(Seq("no.such.Class", getClass.getName), getClass.getClassLoader))

  @Test def loadingInitialisesNothing(): Unit = {
    LoadedClasses.load(Seq("org.apache.spark.barograph.orders.Explosive$"), getClass.getClassLoader)
    assertFalse(Explosion.happened)
  }
}

object Explosion { @volatile var happened = false }
object Explosive { Explosion.happened = true }
