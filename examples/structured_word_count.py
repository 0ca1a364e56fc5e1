"""Counts the words of a stream in real-time mode, as in Spark's Structured Streaming guide. Barograph restarts it.

    barograph conf --workloads --submit examples/structured_word_count.py counts

The argument is the checkpoint. A broker and a topic of Kafka may follow, with the connector's jars by --packages.
Without them, the input is 200 lines a second from Barograph's replay source, whose jar --workloads adds. In real-time
mode all instances run at once and each takes a seat. How many seats there are, and how many instances count, is chosen
and said; --master local[8] and --conf spark.sql.shuffle.partitions=2, behind --submit, choose it too. Statements that
were added for Barograph are marked.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import explode, split

import barograph  # added

checkpoint = sys.argv[1]

spark = SparkSession.builder.appName("StructuredWordCount").getOrCreate()

# Create DataFrame representing the stream of input lines
if len(sys.argv) == 4:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", sys.argv[2])
    lines = source.option("subscribe", sys.argv[3]).load().selectExpr("CAST(value AS STRING)")
else:
    source = spark.readStream.format("org.apache.spark.barograph.ReplaySource")
    lines = source.option("segments", "0.0:1.0:200.0:200.0").option("partitions", "2").load().select("value")

# Split the lines into words
words = lines.select(explode(split(lines.value, " ")).alias("word"))

# Generate running word count
word_counts = words.groupBy("word").count()

# Start running the query that prints the running counts to the console
query = barograph.start(  # added
    lambda: word_counts.writeStream.outputMode("update")  # added
    .format("console")
    .option("checkpointLocation", checkpoint)
    .trigger(realTime="5 seconds")
)  # added

query.awaitTermination()
