"""Counts the words of a topic in sliding windows and writes the counts into another topic, as in Spark's Structured
Streaming guide and its Kafka guide. Nothing was added to it.

    barograph submit --conf spark.sql.shuffle.partitions=2 --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 \
        examples/kafka_windowed_word_count.py localhost:9092 lines counts checkpoint

The arguments are the addresses of brokers, the topic to read, the topic to write, and the checkpoint. In real-time mode
all instances run at once, each in a seat of its own: one for each partition of the topic, and two of the count.
Whoever reads the output takes the last record of each key: a count is written again whenever it changes, and the rows
of an epoch are written again when the query is restarted.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import explode, split, window

servers, topic, output, checkpoint = sys.argv[1:]

spark = SparkSession.builder.appName("KafkaWindowedWordCount").getOrCreate()

# Create DataFrame representing the stream of input lines from Kafka, with the time of each line
lines = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", servers)
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
    windowed_counts.selectExpr(
        "CONCAT(CAST(window.start AS STRING), ' ', word) AS key", "CAST(count AS STRING) AS value"
    )
    .writeStream.outputMode("update")
    .format("kafka")
    .option("kafka.bootstrap.servers", servers)
    .option("topic", output)
    .option("checkpointLocation", checkpoint)
    .trigger(realTime="5 seconds")
    .start()
)

query.awaitTermination()
