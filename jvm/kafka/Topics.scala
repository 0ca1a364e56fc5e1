package org.apache.spark.barograph.kafka

import scala.collection.mutable

/** brokers: as the reader's options name them. */
final case class Topic(brokers: String, name: String)

/** How many partitions a topic has, as a broker last said. */
final case class TopicSize(topic: Topic, partitions: Int)

/** A topic of which a topology's present epoch reads fewer partitions than there are. */
final case class GrownTopic(topology: String, runId: String, topic: String, read: Int, partitions: Int)

/**
 * In the driver: how many partitions of each topic the present epochs read, and how many there are, as executors
 * report. The connector looks for new partitions only where an epoch begins.
 */
object Topics {
  private val reads = mutable.Map[String, (String, Map[Topic, Int])]() // topology -> its run, and what its epoch reads
  private val sizes = mutable.Map[Topic, Int]()

  def reset(): Unit = synchronized {
    reads.clear()
    sizes.clear()
  }

  /** An epoch is planned that reads so many partitions of each topic; empty: of none that is looked at. */
  def planned(topology: String, runId: String, topics: Map[Topic, Int]): Unit = synchronized {
    if (topics.isEmpty) reads -= topology else reads(topology) = (runId, topics)
    val read = reads.values.flatMap(_._2.keys).toSet
    sizes.filterInPlace((topic, _) => read(topic))
  }

  def reported(found: Seq[TopicSize]): Unit =
    if (found.nonEmpty) synchronized { found.foreach(size => sizes(size.topic) = size.partitions) }

  /** lives: whether a run has not ended. */
  def grown(lives: String => Boolean): Seq[GrownTopic] = synchronized {
    for {
      (topology, (runId, topics)) <- reads.toSeq if lives(runId)
      (topic, read) <- topics
      now <- sizes.get(topic) if now > read
    } yield GrownTopic(topology, runId, topic.name, read, now)
  }
}
