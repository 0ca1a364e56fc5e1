package org.apache.spark.barograph.testing

import org.apache.hadoop.fs.Path

import org.apache.spark.barograph.FencedCheckpointFiles
import org.apache.spark.barograph.internals.Repartition
import org.apache.spark.barograph.lease.Leases
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CheckpointFileManager, CommitLog, OffsetSeq, OffsetSeqLog}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.ChildFirstURLClassLoader

/**
 * One of several drivers on one checkpoint, all in this JVM: it takes the lease, writes Spark's own logs and takes a
 * repartition back, as a query's thread does, but waits at each step ([[Gate]]). The session must name [[SteppedFiles]]
 * as the class of checkpoint files.
 */
class SteppedDriver(session: SparkSession, checkpoint: String) {
  // A query has them from its start to its end; they remember what they wrote.
  private var logs: Option[(OffsetSeqLog, CommitLog)] = None

  private def opened: (OffsetSeqLog, CommitLog) = {
    logs = logs.orElse(Some(
      (new OffsetSeqLog(session, s"$checkpoint/offsets"), new CommitLog(session, s"$checkpoint/commits"))))
    logs.get
  }

  private def offsets = opened._1
  private def commits = opened._2

  /** Where it waits, as in every call; see [[Gate.go]]. */
  def takeLease(): String = Gate.begin(Set("open", "exists", "move")) {
    val conf = session.sessionState.newHadoopConf()
    conf.set(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key, classOf[SteppedFiles].getName)
    CheckpointFileManager.create(new Path(checkpoint), conf).createCheckpointDirectory()
  }

  /** end: the rows that are read by then. A repartition has another number of instances than the epoch before it. */
  def writeOffsets(epoch: Long, end: Int, isRepartition: Boolean): String = Gate.begin(Set.empty) {
    val key = SQLConf.SHUFFLE_PARTITIONS.key
    val before = offsets.get(epoch - 1).flatMap(_.metadataOpt).flatMap(_.conf.get(key)).fold(2)(_.toInt)
    val count = if (isRepartition) before + 1 else before
    val metadata = s"""{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{"$key":"$count"}}"""
    write(offsets.add(epoch, OffsetSeq.fill(Some(metadata), new Offset { override def json: String = s"[$end]" })))
  }

  /** state: a name of the state that the commit names. */
  def writeCommit(epoch: Long, state: String): String = Gate.begin(Set.empty) {
    write(commits.add(epoch, commits.createMetadata(0, Some(Map(0L -> Array(Array(state)))), Map.empty, 2)))
  }

  /** As at a query's start: epochs that were begun and not committed are read again. */
  def dropUncommitted(): String = Gate.begin(Set("exists")) {
    logs = None
    offsets.purgeAfter(commits.getLatestBatchId().getOrElse(-1L))
  }

  /** The query is not running meanwhile. */
  def undoRepartition(): String = Gate.begin(Set("exists")) {
    logs = None
    Repartition.undo(session, checkpoint)
  }

  def go(): String = Gate.go()

  def abandon(): Unit = {
    Gate.abandon()
    Leases.end()
  }

  /** The state that each commit names, as a new query reads it: lines of an epoch and a name. */
  def committed(): String = {
    val log = new CommitLog(session, s"$checkpoint/commits")
    def stateOf(epoch: Long): String = log.get(epoch).get.stateUniqueIds.get(0L).head.head
    log.listBatchesOnDisk.sorted.map(epoch => s"$epoch ${stateOf(epoch)}\n").mkString
  }

  /** Spark looks itself whether the entry is there, before it writes. */
  private def write(isNew: Boolean): Unit = if (!isNew) throw new IllegalStateException("the entry is there")
}

/** Each class loader has its own leases, as each process has. */
object SteppedDrivers {
  def loader(): ClassLoader = new ChildFirstURLClassLoader(
    Array(classOf[FencedCheckpointFiles], classOf[SteppedDriver])
      .map(_.getProtectionDomain.getCodeSource.getLocation),
    getClass.getClassLoader)

  def open(loader: ClassLoader, session: SparkSession, checkpoint: String): SteppedDriverCalls =
    new SteppedDriverCalls(loader.loadClass(classOf[SteppedDriver].getName)
      .getConstructor(classOf[SparkSession], classOf[String]).newInstance(session, checkpoint).asInstanceOf[AnyRef])
}

/** Calls of a driver by name: classes of several loaders with one name are one class to Python's bridge. */
class SteppedDriverCalls(driver: AnyRef) {
  private val methods = driver.getClass.getMethods.map(method => method.getName -> method).toMap

  def ask(name: String, arguments: java.util.List[AnyRef]): AnyRef = methods(name).invoke(driver, arguments.toArray: _*)
}
