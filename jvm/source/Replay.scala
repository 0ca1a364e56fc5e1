package org.apache.spark.barograph.source

import java.util

import org.apache.spark.sql.types.{DataType, IntegerType, LongType, StringType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * The options.
 *
 * closeS: rows due at or after that many seconds of the load do not exist. untilRows: for a batch, how many rows of
 * each partition to read. startMs: when the load starts; a checkpoint overrides it.
 */
case class Replay(
    segments: String,
    partitions: Int,
    lines: LineShape,
    text: Boolean,
    startMs: Option[Long],
    closeS: Option[Double],
    untilRows: Option[Seq[Long]],
    readTime: Boolean = false) {
  require(partitions >= 1, s"partitions must be at least 1, not $partitions")
  require(closeS.forall(_ >= 0), s"close_s must be at least 0, not ${closeS.get}")
  require(
    untilRows.forall(rows => rows.length == partitions && rows.forall(_ >= 0)),
    s"until_rows must have a count of rows for each of the $partitions partitions")

  val load: Load = Load.decode(segments)

  val schema: StructType = {
    val value: DataType = if (text) StringType else LongType
    val columns = new StructType()
      .add("partition", IntegerType, nullable = false)
      .add("k", LongType, nullable = false)
      .add("due_ms", LongType, nullable = false)
      .add("value", value, nullable = false)
    if (readTime) columns.add("read_ms", LongType, nullable = false) else columns
  }

  // Not the segments themselves: there may be many, and this text is part of every progress report.
  override def toString: String = s"replay of $load over $partitions partitions"

  /** The first row of the partition that does not exist; Long.MaxValue if the source is never closed. */
  def end(partition: Int): Long = end(partition, closeS)

  def end(partition: Int, closeS: Option[Double]): Long =
    closeS.map(load.rowsUntil(partition, partitions, _)).getOrElse(Long.MaxValue)
}

object Replay {
  private val Known = Set("partitions", "segments", "seed", "words_per_line", "vocabulary", "skew", "content",
    "start_ms", "close_s", "until_rows", "read_time", "path")

  def of(options: CaseInsensitiveStringMap): Replay = {
    options.keySet.forEach { name =>
      require(Known(name.toLowerCase(util.Locale.ROOT)), s"the replay source has no option $name")
    }
    def option[T](name: String, parse: String => T): Option[T] = Option(options.get(name)).map { value =>
      try parse(value.trim) catch {
        case _: NumberFormatException => throw new IllegalArgumentException(s"$name is not a number: '$value'")
      }
    }
    val content = option("content", identity).getOrElse("text")
    require(content == "text" || content == "numbers", s"content must be text or numbers, not '$content'")
    Replay(
      segments = option("segments", identity).getOrElse(
        throw new IllegalArgumentException("the replay source needs the option segments")),
      partitions = option("partitions", _.toInt).getOrElse(1),
      lines = LineShape(
        seed = option("seed", _.toLong).getOrElse(0L),
        wordsPerLine = option("words_per_line", _.toInt).getOrElse(8),
        vocabulary = option("vocabulary", _.toInt).getOrElse(2000),
        skew = option("skew", _.toDouble).getOrElse(1.0)),
      text = content == "text",
      startMs = option("start_ms", _.toLong),
      closeS = option("close_s", _.toDouble),
      untilRows = option("until_rows", _.split(",").map(_.trim.toLong).toSeq),
      readTime = option("read_time", identity).exists {
        case "true" => true
        case "false" => false
        case other => throw new IllegalArgumentException(s"read_time must be true or false, not '$other'")
      })
  }
}
