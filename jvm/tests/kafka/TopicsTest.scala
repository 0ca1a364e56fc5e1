package org.apache.spark.barograph.kafka

import org.junit.jupiter.api.{BeforeEach, Test}
import org.junit.jupiter.api.Assertions._

/** What the driver knows of topics whose partitions become more. */
class TopicsTest {
  private val lines = Topic("a:9092", "lines")
  private val other = Topic("b:9092", "lines")

  @BeforeEach def forget(): Unit = Topics.reset()

  private def grown: Seq[GrownTopic] = Topics.grown(Set("run", "second"))

  @Test def aTopicHasGrownWhereItsPresentEpochReadsLess(): Unit = {
    Topics.planned("t", "run", Map(lines -> 4))
    assertEquals(Nil, grown, "nothing is reported yet")
    Topics.reported(Seq(TopicSize(lines, 4)))
    assertEquals(Nil, grown)
    Topics.reported(Seq(TopicSize(lines, 6)))
    assertEquals(Seq(GrownTopic("t", "run", "lines", 4, 6)), grown)
    Topics.planned("t", "run", Map(lines -> 6))
    assertEquals(Nil, grown, "the next epoch reads all")
  }

  @Test def topicsOfAnotherClusterAndOtherTopologiesAreTheirOwn(): Unit = {
    Topics.planned("t", "run", Map(lines -> 4))
    Topics.planned("u", "second", Map(other -> 4, lines -> 6))
    Topics.reported(Seq(TopicSize(other, 9), TopicSize(lines, 6)))
    assertEquals(
      Set(GrownTopic("t", "run", "lines", 4, 6), GrownTopic("u", "second", "lines", 4, 9)), grown.toSet)
  }

  @Test def aRunThatHasEndedIsNoneOfIt(): Unit = {
    Topics.planned("t", "ended", Map(lines -> 4))
    Topics.reported(Seq(TopicSize(lines, 6)))
    assertEquals(Nil, grown)
  }

  /** One that reads no topic, or partitions that were assigned to it. */
  @Test def aTopologyThatIsNotLookedAtIsForgotten(): Unit = {
    Topics.planned("t", "run", Map(lines -> 4))
    Topics.planned("t", "run", Map.empty)
    Topics.reported(Seq(TopicSize(lines, 6)))
    assertEquals(Nil, grown)
  }
}
