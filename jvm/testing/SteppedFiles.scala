package org.apache.spark.barograph.testing

import java.io.OutputStream
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit}

import scala.util.control.{ControlThrowable, NonFatal}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.barograph.FencedCheckpointFiles
import org.apache.spark.barograph.lease.LeaseFiles

/** Checkpoint files whose operations wait, one by one, until they are let through [[Gate]]. */
class SteppedFiles(path: Path, conf: Configuration) extends FencedCheckpointFiles(path, conf) {
  override protected def leaseFiles: LeaseFiles = new SteppedLeaseFiles(super.leaseFiles)
}

/** The names of steps are those of the protocol's model (tests/engines/spark/lease/protocol.py). */
class SteppedLeaseFiles(files: LeaseFiles) extends LeaseFiles {
  /** What the next listing of leases is for: "look", "check", "fence off", or nothing to wait for. */
  @volatile private var listing = "look"

  override def list(folder: Path): Seq[String] = {
    val step = listing
    if (step.nonEmpty) {
      Gate.pass(step)
      listing = if (step == "check") "fence off" else ""
    }
    files.list(folder)
  }

  override def createNew(file: Path, text: String): Boolean = {
    Gate.pass("number")
    val made = files.createNew(file, text)
    if (!made) listing = "look"
    made
  }

  override def makeFolder(path: Path): Unit = {
    if (isNumber(path)) {
      Gate.pass("fence")
      listing = "check"
    }
    files.makeFolder(path)
  }

  override def open(file: Path): OutputStream = {
    Gate.pass("open")
    files.open(file)
  }

  override def exists(path: Path): Boolean = {
    if (isLogEntry(path)) Gate.pass("exists")
    files.exists(path)
  }

  override def move(from: Path, to: Path): Unit = {
    if (isLogEntry(from) || isLogEntry(to)) Gate.pass("move")
    files.move(from, to)
  }

  override def delete(path: Path): Unit = {
    if (isNumber(path) && listing == "fence off") listing = "look" // the check failed: it begins anew
    files.delete(path)
  }

  override def read(file: Path): String = files.read(file)
  override def stamp(file: Path): Long = files.stamp(file)
  override def renew(file: Path): Unit = files.renew(file)

  private def isNumber(path: Path) = path.getName.forall(_.isDigit) && path.getParent.getName == "lease"
  private def isLogEntry(path: Path) =
    path.getName.forall(_.isDigit) && Set("offsets", "commits")(path.getParent.getName)
}

/** Where a driver's thread waits before each of its steps. One for each class loader, and so for each driver. */
object Gate {
  private val LimitS = 60L
  private val said = new LinkedBlockingQueue[String]()
  private val permits = new LinkedBlockingQueue[Boolean]()
  @volatile private var worker: Option[Thread] = None
  @volatile private var ignored = Set.empty[String]
  @volatile private var isOver = false

  /** The thread's work is over before it is done. */
  private final class Abandoned extends ControlThrowable

  /** Do this on a thread of its own, until it waits or is done. ignored: steps at which it does not wait. */
  def begin(ignored: Set[String])(work: => Unit): String = {
    require(!worker.exists(_.isAlive), "it is still at work")
    this.ignored = ignored
    isOver = false
    val thread = new Thread(() => said.put(
      try { work; "done" }
      catch { case _: Abandoned => "abandoned"; case NonFatal(e) => s"failed: $e" }), "stepped-driver")
    thread.setContextClassLoader(getClass.getClassLoader)
    thread.setDaemon(true)
    worker = Some(thread)
    thread.start()
    await()
  }

  /** Let it take the step before which it waits. Where it waits then; "done", or "failed: " and why. */
  def go(): String = {
    permits.put(true)
    await()
  }

  /** End what is not done yet. */
  def abandon(): Unit = {
    isOver = true
    worker.foreach { thread =>
      if (thread.isAlive) permits.put(false)
      thread.join(LimitS * 1000)
      require(!thread.isAlive, "it does not end")
    }
    worker = None
    said.clear()
    permits.clear()
  }

  def pass(step: String): Unit = if (worker.contains(Thread.currentThread()) && !ignored(step)) {
    if (isOver) throw new Abandoned
    said.put(step)
    if (!permits.take()) throw new Abandoned
  }

  private def await(): String = {
    val found = Option(said.poll(LimitS, TimeUnit.SECONDS)).getOrElse("failed: it hangs")
    if (found == "done" || found.startsWith("failed")) worker.foreach(_.join(1000)) // it has said its last
    found
  }
}
