package org.apache.spark.barograph.orders

import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.concurrent.duration.Duration
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.io.IOUtils

import org.apache.spark.FutureAction
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.planner.SteerRealTime
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.barograph.SqlInternals
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
import org.apache.spark.sql.execution.WholeStageCodegenExec
import org.apache.spark.sql.execution.streaming.state.RocksDBLoader
import org.apache.spark.util.SerializableConfiguration

/**
 * Prepares the target executors of moves: each compiles the topology's generated code, loads the library of the state
 * store, and reads the files of the moved instance's state, so that they are in the page cache. A second live copy of
 * the state itself is not possible: Spark's state coordinator knows one place for each store, and has the old one
 * unloaded while its task still writes.
 */
object Warm {
  private val underway = ConcurrentHashMap.newKeySet[Underway]()
  private final class Underway(val job: FutureAction[Unit], val tasks: Int)

  /**
   * An epoch is about to begin that leaves so many seats free. Spark counts every unfinished task when it admits an
   * epoch, and fails the query if an instance has no seat; so preparations are cancelled if they are in the way.
   */
  def standBack(free: Int): Unit = {
    val now = underway.asScala.toSeq
    if (now.map(_.tasks).sum > free) now.foreach(_.job.cancel())
  }

  /**
   * moves: (instance index, target executor). Waits no longer than the timeout. False if not everything is prepared by
   * then, or if no seats are free for it now.
   */
  def targets(session: SparkSession, topology: String, moves: Seq[(Int, String)], timeoutMs: Long): Boolean = {
    val context = SparkInternals.context(session)
    val query = SparkInternals.activeQueries(session)
      .find(q => topology == SteerRealTime.topologyName(q.name, q.id.toString))
    val hosts = Ledger.liveExecutors(context).map(e => e.id -> e.host).toMap
    val work = moves.groupMap(_._2)(_._1).toSeq.collect { case (executor, indices) if hosts.contains(executor) =>
      (indices, Seq(s"executor_${hosts(executor)}_$executor"))
    }
    if (work.size > Ledger.freeSeats(context)) false
    else query.filter(_ => work.nonEmpty).forall { running =>
      val folder = running.resolvedCheckpointRoot
      val code = Option(running.lastExecution).toSeq.flatMap(_.executedPlan.collect {
        case stage: WholeStageCodegenExec => Try(stage.doCodeGen()._2).toOption
      }.flatten)
      val hadoop = new SerializableConfiguration(SqlInternals.hadoopConf(session))
      val rdd = context.makeRDD(work)
      val job = rdd.foreachPartitionAsync { batches =>
        // An executor keeps its compiled code; the instance that moves finds it there.
        code.foreach(source => Try(CodeGenerator.compile(source)))
        batches.flatten.foreach(index => read(new Path(folder), index, hadoop))
      }
      val mine = new Underway(job, work.size)
      underway.add(mine)
      try {
        val done = Try(job.ready(Duration(timeoutMs, TimeUnit.MILLISECONDS))(null)).isSuccess
        if (!done) job.cancel()
        done && !job.isCancelled
      } finally underway.remove(mine)
    }
  }

  private def read(root: Path, index: Int, hadoop: SerializableConfiguration): Unit = {
    val state = new Path(root, "state")
    val fs = state.getFileSystem(hadoop.value)
    if (fs.exists(state)) {
      Try(RocksDBLoader.loadLibrary())
      fs.listStatus(state).map(o => new Path(o.getPath, index.toString)).filter(fs.exists).foreach(readAll(fs, _))
    }
  }

  /** Files come and go while a query runs; a file that is gone need not be read. */
  private def readAll(fs: FileSystem, folder: Path): Unit = {
    val files = fs.listFiles(folder, true)
    while (files.hasNext) {
      val path = files.next().getPath
      Try {
        val in = fs.open(path)
        IOUtils.copyBytes(in, java.io.OutputStream.nullOutputStream(), 1 << 16, true)
      }
    }
  }
}
