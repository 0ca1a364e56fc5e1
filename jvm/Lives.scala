package org.apache.spark.barograph

import java.nio.file.{Files, Path}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.collection.mutable

import org.apache.spark.{SparkEnv, TaskContext}

/** One instance in one epoch, as seen from its own thread. Times are milliseconds since 1970; 0 is not yet. */
final class Life(
    val topology: String,
    val runId: String,
    val epoch: Long,
    val operator: String,
    val index: Int,
    val executor: String,
    val pid: Int,
    val tid: Int,
    val startedMs: Long) {
  @volatile var endedMs: Long = 0L
  /** Rows read from the source in this epoch. One writer; a reader may see it a moment late. */
  var rowsRead: Long = 0L
  var rowsReported: Long = 0L

  // Rows out, by 10 ms of wall time. Written by the task's thread, read by the reporter.
  private val tenths = new ConcurrentLinkedQueue[Array[Long]]()
  private var current = 0L
  private var count = 0L

  def row(): Unit = {
    val tenth = System.currentTimeMillis() / 10
    if (tenth != current) flush(tenth)
    count += 1
  }

  private def flush(next: Long): Unit = {
    if (count > 0) tenths.add(Array(current, count))
    current = next
    count = 0
  }

  def end(): Unit = { flush(0L); endedMs = System.currentTimeMillis() }

  def takeTenths(): Array[Long] = {
    val taken = mutable.ArrayBuilder.make[Long]
    var pair = tenths.poll()
    while (pair != null) { taken ++= pair; pair = tenths.poll() }
    taken.result()
  }
}

/** What an executor tells of a life: its state now, and the rows out since the last report as (10 ms, count) pairs. */
final case class LifeReport(
    topology: String, runId: String, epoch: Long, operator: String, index: Int, executor: String,
    pid: Int, tid: Int, startedMs: Long, endedMs: Long, rowsRead: Long,
    output: Array[Long])

/** Every instance that runs, or has just run, in this executor. */
object Lives {
  private val here = new ThreadLocal[Life]()
  private val begun = new ConcurrentLinkedQueue[Life]()
  private val running = mutable.Set[Life]()

  def begin(marks: Marks, operator: String, index: Int, context: TaskContext): Life = {
    val (pid, tid) = osThread()
    val life = new Life(marks.topology, marks.runId, marks.epoch, operator, index, SparkEnv.get.executorId,
      pid, tid, System.currentTimeMillis())
    here.set(life)
    begun.add(life)
    context.addTaskCompletionListener[Unit] { _ => life.end(); here.remove() }
    life
  }

  /** The instance that runs on the calling thread; null where none does. */
  def current: Life = here.get()

  /** (process, thread) as the operating system numbers them; 0 where it does not tell. */
  private def osThread(): (Int, Int) =
    try {
      val parts = Files.readSymbolicLink(Path.of("/proc/thread-self")).toString.split("/")
      (parts(0).toInt, parts(2).toInt)
    } catch { case _: Exception => (0, 0) }

  /** All that is new since the last call. Called by one thread only. */
  def report(): Seq[LifeReport] = {
    val reports = mutable.ArrayBuffer[LifeReport]()
    def tell(life: Life, ended: Long): Unit =
      reports += LifeReport(life.topology, life.runId, life.epoch, life.operator, life.index, life.executor,
        life.pid, life.tid, life.startedMs, ended, life.rowsRead, life.takeTenths())
    var fresh = begun.poll()
    val news = mutable.Set[Life]()
    while (fresh != null) { running += fresh; news += fresh; fresh = begun.poll() }
    running.toSeq.foreach { life =>
      val ended = life.endedMs
      if (ended > 0) { tell(life, ended); running -= life }
      else {
        val before = reports.size
        tell(life, 0L)
        val idle = reports(before).output.isEmpty && life.rowsRead == life.rowsReported
        if (!news(life) && idle) reports.remove(before) else life.rowsReported = reports(before).rowsRead
      }
    }
    reports.toSeq
  }
}
