package org.apache.spark.barograph.source

import java.util

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

class ReplayTable(replay: Replay) extends Table with SupportsRead {
  override def name(): String = "replay"

  override def schema(): StructType = replay.schema

  override def capabilities(): util.Set[TableCapability] =
    util.EnumSet.of(TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => new ReplayScan(replay)
}

class ReplayScan(replay: Replay) extends Scan {
  override def readSchema(): StructType = replay.schema

  override def description(): String = replay.toString

  override def toMicroBatchStream(checkpoint: String): MicroBatchStream = ReplayStream.open(replay, checkpoint)

  override def toBatch: Batch = {
    require(
      replay.untilRows.isDefined || replay.closeS.isDefined,
      "a replayed load has no end: a batch needs the option close_s or until_rows")
    new ReplayBatch(replay)
  }
}

class ReplayBatch(replay: Replay) extends Batch {
  override def planInputPartitions(): Array[InputPartition] = Array.tabulate(replay.partitions) { p =>
    val end = Math.min(replay.end(p), replay.untilRows.map(_(p)).getOrElse(Long.MaxValue))
    ReplayPartition(replay, replay.startMs.getOrElse(0L), p, 0L, end)
  }

  override def createReaderFactory(): PartitionReaderFactory = ReplayReaderFactory
}
