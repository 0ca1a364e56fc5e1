"""Counts the words of a topic in sliding windows and writes the counts into another topic, as in Spark's Structured
Streaming guide and its Kafka guide. Nothing was added to it.

Under barograph submit it needs Spark's Kafka connector, by --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
or by --jars, and --conf spark.sql.shuffle.partitions=2: in real-time mode all instances run at once, each in a seat of
its own, one for each partition of the topic and two of the count. Its arguments are a file with the settings of Kafka's
clients, as Kafka's own tools take it (bootstrap.servers=..., and a login where brokers ask for one), the topic to read,
the topic to write, and the checkpoint.

The last record of a key is its count: it is written again whenever it changes, and a restart writes some of the records
again.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import explode, split, window

client, topic, output, checkpoint = sys.argv[1:]

spark = SparkSession.builder.appName("KafkaWindowedWordCount").getOrCreate()

# Kafka's own configurations are options with the prefix kafka.
settings = [line.split("=", 1) for line in Path(client).read_text().splitlines() if "=" in line]
kafka = {"kafka." + name.strip(): value.strip() for name, value in settings}

# Create DataFrame representing the stream of input lines from Kafka, with the time of each line
lines = (
    spark.readStream.format("kafka")
    .options(**kafka)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .load()
    .selectExpr("CAST(value AS STRING)", "timestamp")
)

# Split the lines into words, retaining timestamps
words = lines.select(explode(split(lines.value, " ")).alias("word"), lines.timestamp)

# Group the data by window and word and compute the count of each group
windowed_counts = (
    words.withWatermark("timestamp", "10 minutes")
    .groupBy(window(words.timestamp, "10 seconds", "5 seconds"), words.word)
    .count()
)

# Write key-value data to Kafka: the start of the window and the word, and the count
query = (
    windowed_counts.selectExpr("CONCAT(window.start, ' ', word) AS key", "CAST(count AS STRING) AS value")
    .writeStream.outputMode("update")
    .format("kafka")
    .options(**kafka)
    .option("topic", output)
    .option("checkpointLocation", checkpoint)
    .trigger(realTime="5 seconds")
    .start()
)

query.awaitTermination()
