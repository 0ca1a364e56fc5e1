// An application as a user writes it: it counts words with transformWithState, which only Scala and Java have.
package counts

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.functions.{explode, split}
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TTLConfig, TimeMode, TimerValues, Trigger, ValueState}

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

object Main {
  def main(args: Array[String]): Unit = {
    val spark = SparkSession.builder().appName("ScalaCounts").getOrCreate()
    import spark.implicits._
    val lines = spark.readStream.format("org.apache.spark.barograph.ReplaySource")
      .option("partitions", "2").option("segments", args(1)).load()
    val words = lines.repartition(2).select(explode(split($"value", " ")).as("word")).as[String]
    val counts = words.groupByKey(word => word).transformWithState(new Counter, TimeMode.None(), OutputMode.Update())
    val query = counts.writeStream.outputMode("update").format("console")
      .option("checkpointLocation", args(0)).queryName("counts").trigger(Trigger.RealTime("5 seconds")).start()
    query.awaitTermination()
  }
}
