package org.apache.spark.barograph.orders

import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, TimeUnit}

import scala.concurrent.duration.Duration
import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.io.IOUtils

import org.apache.spark.{FutureAction, SparkContext}
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.barograph.SqlInternals
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
import org.apache.spark.sql.execution.WholeStageCodegenExec
import org.apache.spark.sql.execution.streaming.state.RocksDBLoader
import org.apache.spark.util.SerializableConfiguration

/**
 * Prepares executors for instances: each loads the classes that an executor with instances has loaded, compiles the
 * topology's generated code, loads the library of the state store, and reads the files of the state of instances that
 * move there, so that they are in the page cache. A second live copy of the state itself is not possible: Spark's state coordinator knows one place for each store, and has the old one
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

  // Of an executor that had run instances for a while; the same for all executors of an application.
  @volatile private var needed: (String, Seq[String]) = ("", Nil)

  /**
   * moves: (instance index, target executor); an index below 0 prepares the executor for any instance. Waits no longer
   * than the timeout. False if not everything is prepared by then, or if no seats are free for it now.
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
      val classes = classesOf(context, hosts -- moves.map(_._2), timeoutMs)
      val rdd = context.makeRDD(work)
      val job = rdd.foreachPartitionAsync { batches =>
        LoadedClasses.load(classes, Thread.currentThread().getContextClassLoader)
        // An executor keeps its compiled code; the instance that moves finds it there.
        code.foreach(source => Try(CodeGenerator.compile(source)))
        batches.flatten.foreach(index => read(new Path(folder), index, hadoop))
      }
      done(job, work.size, timeoutMs)
    }
  }

  /** The classes that instances need, as one of these executors (id to host) that has run some says. Asked once. */
  private def classesOf(context: SparkContext, hosts: Map[String, String], timeoutMs: Long): Seq[String] = {
    if (needed._1 != context.applicationId) {
      Ledger.warm.filter(hosts.contains).take(1).foreach { executor =>
        val found = new ConcurrentLinkedQueue[String]()
        val rdd = context.makeRDD(Seq((0, Seq(s"executor_${hosts(executor)}_$executor"))))
        val job = context.submitJob[Int, Seq[String], Unit](
          rdd, _ => LoadedClasses.names, Seq(0), (_, names) => found.addAll(names.asJava), ())
        if (done(job, 1, timeoutMs) && !found.isEmpty) needed = (context.applicationId, found.asScala.toSeq)
      }
    }
    if (needed._1 == context.applicationId) needed._2 else Nil
  }

  private def done(job: FutureAction[Unit], tasks: Int, timeoutMs: Long): Boolean = {
    val mine = new Underway(job, tasks)
    underway.add(mine)
    try {
      val ready = Try(job.ready(Duration(timeoutMs, TimeUnit.MILLISECONDS))(null)).isSuccess
      if (!ready) job.cancel()
      ready && !job.isCancelled
    } finally underway.remove(mine)
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
