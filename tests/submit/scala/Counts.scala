// Applications as users write them: they count words with transformWithState, which only Scala and Java have. The first
// has one query, the other two, and waits for any of them.
package counts

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.functions.{explode, split}
import org.apache.spark.sql.streaming.{
  OutputMode, StatefulProcessor, StreamingQuery, TTLConfig, TimeMode, TimerValues, Trigger, ValueState}

class Counter extends StatefulProcessor[String, String, (String, Long)] {
  @transient private var count: ValueState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    count = getHandle.getValueState[Long]("count", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(word: String, rows: Iterator[String], timers: TimerValues): Iterator[(String, Long)] = {
    val now = (if (count.exists()) count.get() else 0L) + rows.size
    count.update(now)
    Iterator.single((word, now))
  }
}

object Counts {
  def start(name: String, checkpoint: String, segments: String): StreamingQuery = {
    val spark = SparkSession.builder().appName("ScalaCounts").getOrCreate()
    import spark.implicits._
    val lines = spark.readStream.format("org.apache.spark.barograph.ReplaySource")
      .option("partitions", "2").option("segments", segments).load()
    val words = lines.repartition(2).select(explode(split($"value", " ")).as("word")).as[String]
    val counts = words.groupByKey(word => word).transformWithState(new Counter, TimeMode.None(), OutputMode.Update())
    counts.writeStream.outputMode("update").format("console")
      .option("checkpointLocation", checkpoint).queryName(name).trigger(Trigger.RealTime("5 seconds")).start()
  }
}

object Main {
  def main(args: Array[String]): Unit = Counts.start("counts", args(0), args(1)).awaitTermination()
}

object Two {
  def main(args: Array[String]): Unit = {
    val first = Counts.start("first", args(0), args(2))
    Counts.start("second", args(1), args(2))
    first.sparkSession.streams.awaitAnyTermination()
  }
}
