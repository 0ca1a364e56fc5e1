package org.apache.spark.barograph.source

import java.nio.charset.StandardCharsets.UTF_8
import java.util
import java.util.Optional
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.JsonMethods.{compact, parse, render}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

/** The first row of each partition that was not read, as a JSON array. */
case class ReplayOffset(k: Seq[Long]) extends Offset {
  override def json(): String = k.mkString("[", ",", "]")
}

object ReplayOffset {
  def of(offset: Offset): ReplayOffset = offset match {
    case known: ReplayOffset => known
    case other => parse(other.json())
  }

  def parse(json: String): ReplayOffset = try {
    ReplayOffset(json.trim.stripPrefix("[").stripSuffix("]").split(",").map(_.trim.toLong).toSeq)
  } catch {
    case _: NumberFormatException => throw new IllegalArgumentException(s"not an offset of the replay source: $json")
  }
}

/**
 * A load as a running query sees it, in the driver. Real-time epochs have a start and no end; micro-batches read the
 * rows that are due when they are planned.
 */
final class ReplayStream private (val replay: Replay, val startMs: Long, val checkpoint: String)
  extends MicroBatchStream with SupportsRealTimeMode with ReportsSourceMetrics {

  @volatile private var committed = ReplayOffset(Seq.fill(replay.partitions)(0L))
  @volatile private var planned = committed
  @volatile private var closeS = replay.closeS

  /**
   * From the next epoch on, rows due at or after that many seconds of the load do not exist. Rows that were read before
   * stay read. Not stored in the checkpoint: a restart uses the option close_s.
   */
  def close(atLoadSeconds: Double): Unit = closeS = Some(closeS.fold(atLoadSeconds)(Math.min(_, atLoadSeconds)))

  private def end(partition: Int): Long = replay.end(partition, closeS)

  /** Rows of each partition that are due by then, counted from the load's start. */
  def dueRows(nowMs: Long): Seq[Long] = (0 until replay.partitions).map { p =>
    Math.min(end(p), replay.load.rowsDue(p, replay.partitions, nowMs - startMs))
  }

  /** Rows of each partition that finished epochs have read, counted from the load's start. */
  def readRows: Seq[Long] = committed.k

  override def initialOffset(): Offset = ReplayOffset(Seq.fill(replay.partitions)(0L))

  override def deserializeOffset(json: String): Offset = ReplayOffset.parse(json)

  override def latestOffset(): Offset =
    // A clock that was set back must not undo what was read.
    ReplayOffset(dueRows(System.currentTimeMillis()).zip(planned.k).map { case (due, read) => Math.max(due, read) })

  override def planInputPartitions(start: Offset): Array[InputPartition] = {
    // Also after a restart: it starts from what the checkpoint says was read.
    committed = ReplayOffset.of(start)
    partitions(committed, p => Math.max(committed.k(p), end(p)))
  }

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    committed = ReplayOffset.of(start)
    planned = ReplayOffset.of(end)
    partitions(committed, planned.k)
  }

  private def partitions(start: ReplayOffset, end: Int => Long): Array[InputPartition] = {
    require(
      start.k.length == replay.partitions,
      s"the checkpoint has offsets of ${start.k.length} partitions, the load has ${replay.partitions}")
    Array.tabulate(replay.partitions)(p => ReplayPartition(replay, startMs, p, start.k(p), end(p)))
  }

  override def mergeOffsets(offsets: Array[PartitionOffset]): Offset = {
    val read = committed.k.toArray
    offsets.foreach {
      case ReplayPartitionOffset(partition, k) => read(partition) = k
      case other => throw new IllegalArgumentException(s"$other is no offset of the replay source")
    }
    ReplayOffset(read.toSeq)
  }

  override def createReaderFactory(): PartitionReaderFactory = ReplayReaderFactory

  override def commit(end: Offset): Unit = committed = ReplayOffset.of(end)

  override def stop(): Unit = ReplayStreams.forget(this)

  /** Backlog: rows due less rows read, as of now. drained: the source is closed and all its rows are read. */
  override def metrics(latestConsumed: Optional[Offset]): util.Map[String, String] = {
    // Called when a batch is done; the last micro-batch would be committed only with the next one's data.
    latestConsumed.ifPresent(offset => committed = ReplayOffset.of(offset))
    val read = readRows
    val due = dueRows(System.currentTimeMillis())
    Map(
      "due_rows" -> due.sum.toString,
      "read_rows" -> read.sum.toString,
      "backlog_rows" -> due.zip(read).map { case (d, r) => Math.max(0L, d - r) }.sum.toString,
      "drained" -> (0 until replay.partitions).forall(p => read(p) >= end(p)).toString,
      "start_ms" -> startMs.toString).asJava
  }

  override def toString: String = replay.toString
}

object ReplayStream {
  private val LeadMs = 500L // until a query that is started now reads its first row

  /** Opens the load at its checkpoint: the first time it stores when the load starts, later it uses that time. */
  def open(replay: Replay, checkpoint: String): ReplayStream = {
    val path = new Path(checkpoint, "load.json")
    val files = CheckpointFileManager.create(path.getParent, SparkSession.active.sessionState.newHadoopConf())
    val startMs = if (files.exists(path)) {
      val in = files.open(path)
      val note = try parse(new String(in.readAllBytes(), UTF_8)) finally in.close()
      refuseAnotherLoad(note, replay, checkpoint)
      note \ "start_ms" match {
        case JInt(value) => value.toLong
        case _ => throw new IllegalStateException(s"$path does not say when the load started")
      }
    } else {
      val startMs = replay.startMs.getOrElse(System.currentTimeMillis() + LeadMs)
      files.mkdirs(path.getParent)
      val out = files.createAtomic(path, overwriteIfPossible = false)
      try {
        out.write(compact(render(JObject(("start_ms" -> JInt(startMs)) :: identity(replay)))).getBytes(UTF_8))
        out.close()
      } catch {
        case error: Throwable => out.cancel(); throw error
      }
      startMs
    }
    ReplayStreams.remember(new ReplayStream(replay, startMs, checkpoint))
  }

  /** What must not change, so that rows already read are rows of this load. */
  private def identity(replay: Replay): List[JField] = List(
    "partitions" -> JInt(replay.partitions),
    "segments" -> JString(replay.segments),
    "seed" -> JInt(replay.lines.seed),
    "words_per_line" -> JInt(replay.lines.wordsPerLine),
    "vocabulary" -> JInt(replay.lines.vocabulary),
    "skew" -> JString(replay.lines.skew.toString),
    "content" -> JString(if (replay.text) "text" else "numbers"))

  private def refuseAnotherLoad(note: JValue, replay: Replay, checkpoint: String): Unit =
    identity(replay).foreach { case (name, now) =>
      val before = note \ name
      if (before != now) {
        throw new IllegalArgumentException(
          s"the checkpoint $checkpoint belongs to another load: $name was ${show(before)} and is now ${show(now)}")
      }
    }

  private def show(value: JValue): String = value match {
    case JNothing => "not stored"
    case known => compact(render(known))
  }
}

/** The loads that run in this driver, by the checkpoint of the source (the query's checkpoint and sources/0). */
object ReplayStreams {
  private val running = new ConcurrentHashMap[String, ReplayStream]

  private[barograph] def remember(stream: ReplayStream): ReplayStream = {
    running.put(stream.checkpoint, stream)
    stream
  }

  private[barograph] def forget(stream: ReplayStream): Unit = running.remove(stream.checkpoint, stream)

  /** None if no such load runs; a checkpoint may be that of the query or of the source. */
  def find(checkpoint: String): Option[ReplayStream] = {
    def plain(path: String): String = new Path(path).toUri.getPath
    val wanted = plain(checkpoint)
    running.asScala.collectFirst {
      case (at, stream) if plain(at) == wanted || plain(at).startsWith(s"$wanted/") => stream
    }
  }

  def close(checkpoint: String, atLoadSeconds: Double): Unit = find(checkpoint)
    .getOrElse(throw new IllegalArgumentException(s"no load runs at $checkpoint"))
    .close(atLoadSeconds)

  /** Every running load as JSON: {checkpoint: {due_rows, read_rows, backlog_rows, drained, start_ms}}. */
  def status(): String = compact(render(JObject(running.asScala.toList.sortBy(_._1).map { case (at, stream) =>
    at -> JObject(stream.metrics(Optional.empty[Offset]).asScala.toList.sorted.map {
      case (name, value @ ("true" | "false")) => name -> JBool(value.toBoolean)
      case (name, value) => name -> JInt(BigInt(value))
    })
  })))
}
