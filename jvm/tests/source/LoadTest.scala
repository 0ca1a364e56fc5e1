package org.apache.spark.barograph.source

import java.nio.file.Path

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class LoadTest {
  // Tests run in the folder of the checkout. Python checks the same vectors.
  private val vectors = new ObjectMapper().readTree(Path.of("tests", "vectors", "replay.json").toFile)

  @Test def rowsAreDueAsInPython(): Unit = {
    val cases = vectors.get("due").elements().asScala.toSeq
    assertTrue(cases.size > 100)
    for (v <- cases) {
      val load = Load.decode(v.get("segments").asText())
      val due = load.dueMs(v.get("partition").asInt(), v.get("k").asLong(), v.get("partitions").asInt())
      assertEquals(v.get("due_ms").asLong(), due, v.toString)
    }
  }

  @Test def linesAreAsInPython(): Unit =
    for (v <- vectors.get("lines").elements().asScala) {
      val lines = new Lines(LineShape(
        v.get("seed").asLong(), v.get("words_per_line").asInt(), v.get("vocabulary").asInt(), v.get("skew").asDouble()))
      assertEquals(v.get("line").asText(), lines.line(v.get("partition").asInt(), v.get("k").asLong()), v.toString)
    }

  @Test def aConstantRateIsEven(): Unit = {
    val load = Load.decode("0:10:4:4")
    assertEquals(Seq(0L, 250L, 500L, 750L, 1000L), (0L to 4L).map(load.dueMs(0, _, 1)))
    assertEquals(20000L, load.dueMs(0, 80L, 1), "the last rate holds for ever")
    assertEquals(Seq(250L, 750L), (0L to 1L).map(load.dueMs(1, _, 2)))
  }

  @Test def noRowIsDueInAPause(): Unit = {
    val load = Load.decode("0:1:4:4;1:3:0:0;3:4:4:4")
    assertEquals(Seq(750L, 3000L, 3250L), (3L to 5L).map(load.dueMs(0, _, 1)))
    assertEquals(Seq(4L, 4L, 5L), Seq(1000L, 2999L, 3000L).map(load.rowsDue(0, 1, _)))
  }

  @Test def aRowAfterTheEndOfALoadThatStopsIsNeverDue(): Unit = {
    val load = Load.decode("0:1:4:4;1:2:0:0")
    assertEquals(Long.MaxValue, load.dueMs(0, 5L, 1))
    assertEquals(4L, load.rowsUntil(0, 1, 1.0))
  }

  @Test def rowsDueIsTheNumberOfRowsThatAreDue(): Unit =
    for {
      segments <- Seq("0:2:200:2000", "0:1:0:5;1:2:5:0;2:3:7:7", "0:0.5:1000:1000")
      n <- Seq(1, 3)
      p <- 0 until n
    } {
      val load = Load.decode(segments)
      for (tMs <- Seq(-1L, 0L, 1L, 499L, 500L, 999L, 1000L, 1001L, 2500L)) {
        val expected = Iterator.from(0).takeWhile(k => load.dueMs(p, k.toLong, n) <= tMs).size.toLong
        assertEquals(expected, load.rowsDue(p, n, tMs), s"$segments partition $p of $n by $tMs ms")
      }
    }

  @Test def aSourceThatIsClosedHasTheRowsDueBefore(): Unit =
    assertEquals(4L, Load.decode("0:1:4:4").rowsUntil(0, 1, 1.0))

  @Test def aLoadThatMakesNoSenseIsRefused(): Unit =
    Seq(
      "", "0:1:4", "0:1:4:x", "0:1:4:-1", "0:1:4:NaN", "0:1:4:Infinity", "1:1:4:4", "2:1:4:4", "1:2:4:4",
      "0:1:4:4;2:3:4:4", "0:1:4:4;"
    ).foreach { text =>
      assertThrows(classOf[IllegalArgumentException], () => { Load.decode(text); () }, text)
    }
}
