"""Counts the words of a stream in sliding windows, as in Spark's Structured Streaming guide. Nothing was added to it.

    barograph submit --workloads --conf spark.sql.shuffle.partitions=2 examples/windowed_word_count.py counts

The argument is the checkpoint. A broker and a topic of Kafka may follow, with the connector's jars by --packages.
Without them, the input is 200 lines a second from Barograph's replay source, whose jar --workloads adds; another load
may be named as its segments, from:until:rate:rate in seconds and lines a second. In real-time
mode all instances run at once, each in a seat of its own; two shuffle partitions are two instances of the count.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import explode, split, window

checkpoint = sys.argv[1]

spark = SparkSession.builder.appName("WindowedWordCount").getOrCreate()

# Create DataFrame representing the stream of input lines, with the time of each line
if len(sys.argv) == 4:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", sys.argv[2])
    lines = source.option("subscribe", sys.argv[3]).load().selectExpr("CAST(value AS STRING)", "timestamp")
else:
    load = sys.argv[2] if len(sys.argv) == 3 else "0.0:1.0:200.0:200.0"
    source = spark.readStream.format("org.apache.spark.barograph.ReplaySource").option("partitions", "2")
    lines = source.option("segments", load).load().selectExpr("value", "timestamp_millis(due_ms) AS timestamp")

# Split the lines into words, retaining timestamps
words = lines.select(explode(split(lines.value, " ")).alias("word"), lines.timestamp)

# Group the data by window and word and compute the count of each group
windowed_counts = (
    words.withWatermark("timestamp", "10 minutes")
    .groupBy(window(words.timestamp, "10 seconds", "5 seconds"), words.word)
    .count()
)

# Start running the query that prints the windowed word counts to the console
query = (
    windowed_counts.writeStream.outputMode("update")
    .format("console")
    .option("truncate", "false")
    .option("checkpointLocation", checkpoint)
    .trigger(realTime="5 seconds")
    .start()
)

query.awaitTermination()
