package org.apache.spark.barograph.internals

import scala.collection.mutable

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.barograph.SqlInternals
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorsUtils
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf

/**
 * Splits the state of a stopped query over another number of instances: Spark's own offline repartition, which writes
 * it as an epoch without input. Until that epoch is committed the checkpoint is marked as unfinished, and Spark refuses
 * to start the query; it must be repeated or undone.
 */
object Repartition {
  /** Every stateful operator of the query gets `count` instances. Returns the epoch that holds the new state. */
  def run(session: SparkSession, checkpoint: String, count: Int): Long = {
    renameAggregates(session, checkpoint)
    new OfflineStateRepartitionRunner(sessionFor(session, count), checkpoint, count).run()
  }

  /** The number of instances an unfinished repartition was meant to give; 0 if there is none. */
  def unfinished(session: SparkSession, checkpoint: String): Int = {
    val logs = SqlInternals.logsOf(session, checkpoint)
    val started = logs.offsetLog.getLatestBatchId()
    val committed = logs.commitLog.getLatestBatchId()
    (started, committed) match {
      case (Some(last), Some(done))
          if last > done && OfflineStateRepartitionUtils.isRepartitionBatch(last, logs.offsetLog) =>
        OfflineStateRepartitionUtils.getShufflePartitions(logs.offsetLog.get(last).get.metadataOpt.get).get
      case _ => 0
    }
  }

  /**
   * Undo an unfinished repartition: the query keeps its instances. Files of the new state have names of their own
   * (state checkpoints of version 2) that no commit mentions, so they are never read.
   */
  def undo(session: SparkSession, checkpoint: String): Unit = if (unfinished(session, checkpoint) > 0) {
    val logs = SqlInternals.logsOf(session, checkpoint)
    logs.offsetLog.purgeAfter(logs.commitLog.getLatestBatchId().get)
  }

  /**
   * A real-time aggregate has the same state as an ordinary one, and each can open the other's checkpoint; but Spark
   * repartitions only operators with the ordinary aggregate's name.
   */
  private def renameAggregates(session: SparkSession, checkpoint: String): Unit = {
    val hadoop = SqlInternals.hadoopConf(session)
    val state = new Path(checkpoint, "state")
    val fs = state.getFileSystem(hadoop)
    for (folder <- fs.listStatus(state).toSeq.map(_.getPath)) {
      val path = OperatorStateMetadataV1.metadataFilePath(folder)
      if (fs.exists(path)) new OperatorStateMetadataV1Reader(folder, hadoop).read() match {
        case Some(found: OperatorStateMetadataV1)
            if found.operatorInfo.operatorName == StatefulOperatorsUtils.STATEFUL_STREAMLINE_AGGREGATE_EXEC_OP_NAME =>
          val name = StatefulOperatorsUtils.STATE_STORE_SAVE_EXEC_OP_NAME
          val out = CheckpointFileManager.create(folder, hadoop).createAtomic(path, overwriteIfPossible = true)
          val renamed = found.copy(operatorInfo = found.operatorInfo.copy(operatorName = name))
          OperatorStateMetadataUtils.writeMetadata(out, renamed, path)
        case _ =>
      }
    }
  }

  /**
   * A session with the caller's settings and those that a repartition needs; the caller's session is not changed. It is
   * kept for the next repartition, because making one takes time.
   */
  private def sessionFor(session: SparkSession, count: Int): ClassicSession = synchronized {
    val own = sessions.getOrElseUpdate(session, SqlInternals.copyOf(session))
    own.conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key, 2)
    own.conf.set(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key, value = false)
    own.conf.set(SQLConf.SHUFFLE_PARTITIONS.key, count)
    own
  }

  private val sessions = mutable.WeakHashMap[SparkSession, ClassicSession]()
}
