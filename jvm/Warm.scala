package org.apache.spark.barograph

import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.concurrent.duration.Duration
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.io.IOUtils

import org.apache.spark.FutureAction
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.barograph.SqlInternals
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
import org.apache.spark.sql.execution.WholeStageCodegenExec
import org.apache.spark.sql.execution.streaming.state.RocksDBLoader
import org.apache.spark.util.SerializableConfiguration

/**
 * Before instances move: each target executor compiles the topology's generated code, loads the library that keeps state,
 * and reads what the moved instance's state is made of, so that its files are near. A second live copy of the state itself
 * cannot be had: Spark's state coordinator knows one place for each store, and tells the one before to unload it while its
 * task still writes.
 */
object Warm {
  private val underway = ConcurrentHashMap.newKeySet[Underway]()
  private final class Underway(val job: FutureAction[Unit], val tasks: Int)

  /**
   * An epoch is about to begin that leaves so many seats free. Spark counts every task that is not done when it admits an
   * epoch, and one that has no seat for all its instances ends its query; what is only prepared stands back.
   */
  def standBack(free: Int): Unit = {
    val now = underway.asScala.toSeq
    if (now.map(_.tasks).sum > free) now.foreach(_.job.cancel())
  }

  /**
   * moves: (instance number, executor that it moves to). Waits for it no longer than the time; what is late is given up.
   * False: it is not done, also because there are no seats that could be spared for it now.
   */
  def targets(session: SparkSession, topology: String, moves: Seq[(Int, String)], timeoutMs: Long): Boolean = {
    val context = SparkInternals.context(session)
    val query = SparkInternals.activeQueries(session)
      .find(q => topology == q.name || topology == s"query-${q.id.toString.take(8)}")
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
        // An executor keeps what it has compiled; the instance that comes finds it there.
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

  /** Files come and go under a running query; what is gone needs no reading. */
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
