// Applications that end in the ways in which Java programs do.
package counts

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.Trigger

object Ends {
  def main(args: Array[String]): Unit = args(0) match {
    case "returns" => println("main was called with " + args.mkString(" "))
    case "throws" => throw new IllegalStateException("not today")
    case "exits" => System.exit(7)
    case "has a bug" => failingQuery(args(1)).awaitTermination()
  }

  private def failingQuery(checkpoint: String) = {
    val lines = SparkSession.builder().getOrCreate().readStream.format("org.apache.spark.barograph.ReplaySource")
      .option("partitions", "1").option("segments", "0.0:1.0:100.0:100.0").load()
    lines.selectExpr("raise_error(concat('no such word: ', value)) AS word").writeStream.outputMode("update")
      .format("console").option("checkpointLocation", checkpoint).trigger(Trigger.RealTime("5 seconds")).start()
  }
}
