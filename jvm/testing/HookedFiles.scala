package org.apache.spark.barograph.testing

import java.io.{FileOutputStream, IOException, OutputStream, UncheckedIOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, NoSuchFileException, Path => JavaPath}

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, Path}

import org.apache.spark.barograph.FencedCheckpointFiles
import org.apache.spark.barograph.lease.LeaseFiles

/** Checkpoint files whose every operation passes by [[FileHooks]] first. */
class HookedFiles(path: Path, conf: Configuration) extends FencedCheckpointFiles(path, conf) {
  override protected def leaseFiles: LeaseFiles = new HookedLeaseFiles(super.leaseFiles)

  override def createTempFile(path: Path): FSDataOutputStream = {
    if (!isFenced(path)) FileHooks.before("create", path)
    super.createTempFile(path)
  }

  override def renameTempFile(from: Path, to: Path, overwriteIfPossible: Boolean): Unit = {
    if (!isFenced(from)) FileHooks.before("move", to)
    super.renameTempFile(from, to, overwriteIfPossible)
  }

  override def mkdirs(path: Path): Unit = {
    FileHooks.before("make", path)
    super.mkdirs(path)
  }

  override def delete(path: Path): Unit = {
    FileHooks.before("delete", path)
    super.delete(path)
  }

  /** Such operations pass by the hook of the lease's files. */
  private def isFenced(path: Path) = path.getParent.getParent.getName == "lease"
}

class HookedLeaseFiles(files: LeaseFiles) extends LeaseFiles {
  override def list(folder: Path): Seq[String] = files.list(folder)
  override def exists(path: Path): Boolean = files.exists(path)
  override def makeFolder(path: Path): Unit = { FileHooks.before("make", path); files.makeFolder(path) }
  override def createNew(file: Path, text: String): Boolean = {
    FileHooks.before("create", file)
    files.createNew(file, text)
  }
  override def read(file: Path): String = files.read(file)
  override def stamp(file: Path): Long = files.stamp(file)
  // Renewals come at any time: they would count differently in every run.
  override def renew(file: Path): Unit = files.renew(file)
  override def open(file: Path): OutputStream = { FileHooks.before("create", file); files.open(file) }
  override def move(from: Path, to: Path): Unit = { FileHooks.before("move", to); files.move(from, to) }
  override def delete(path: Path): Unit = if (files.exists(path)) {
    FileHooks.before("delete", path)
    files.delete(path)
  }
}

/**
 * What happens immediately before an operation on a checkpoint's files: nothing, a copy of the files as they are, a
 * stop (SIGSTOP), an error, or the end (-9).
 */
object FileHooks {
  private var operations = 0
  private var endAt = 0
  private var log = ""
  private var stopBefore = ""
  private var failBefore = ""
  private var copied: Option[(JavaPath, JavaPath)] = None

  /** Count from now on, and end the process before this operation; 0: never. log: a file for what was done. */
  def arm(operation: Int, file: String): Unit = synchronized {
    operations = 0
    endAt = operation
    log = file
  }

  /**
   * Count from now on, and copy the folder to NUMBER in another one before each operation: what a process that is ended
   * there leaves behind.
   */
  def copyBeforeEach(folder: String, to: String, file: String): Unit = synchronized {
    arm(0, file)
    copied = Some(JavaPath.of(folder) -> JavaPath.of(to))
  }

  /** How many operations there were so far. */
  def counted(): Int = synchronized { operations }

  /** Count no more. Returns how many there were. */
  def disarm(): Int = synchronized {
    endAt = 0
    log = ""
    copied = None
    operations
  }

  /** Stop the process, once, before a file is moved to a path that ends like this. */
  def stopBeforeMove(end: String): Unit = synchronized { stopBefore = end }

  /**
   * Let every move to a path that ends like this fail; empty: none. Meanwhile nothing is counted, copied or ended: what
   * breaks off in this way was counted where it did not.
   */
  def failBeforeMove(end: String): Unit = synchronized { failBefore = end }

  def before(kind: String, path: Path): Unit = synchronized {
    if (kind == "move" && failBefore.nonEmpty && path.toString.endsWith(failBefore))
      throw new IOException(s"on purpose: $path is not written")
    if (kind == "move" && stopBefore.nonEmpty && path.toString.endsWith(stopBefore)) {
      stopBefore = ""
      signal("STOP")
      Thread.sleep(200) // the signal comes at once, but not in the middle of this call
    }
    if (log.nonEmpty && failBefore.isEmpty) {
      operations += 1
      val out = new FileOutputStream(log, true)
      try out.write(s"$operations $kind $path\n".getBytes(UTF_8)) finally out.close()
      copied.foreach { case (folder, to) => copy(folder, to.resolve(operations.toString)) }
      if (operations == endAt) {
        signal("KILL")
        Thread.sleep(60000)
      }
    }
  }

  /**
   * No hooked operation comes meanwhile, but one that has passed by its hook may still be carried out. What is being
   * written to a temporary file may be copied in part, and a file or a folder may be gone.
   */
  private def copy(from: JavaPath, to: JavaPath): Unit = {
    Files.createDirectories(to)
    try Using.resource(Files.list(from))(_.forEach { file =>
      if (Files.isDirectory(file)) copy(file, to.resolve(file.getFileName))
      else try Files.copy(file, to.resolve(file.getFileName)) catch { case _: NoSuchFileException => }
    }) catch {
      case _: NoSuchFileException =>
      case e: UncheckedIOException if e.getCause.isInstanceOf[NoSuchFileException] =>
    }
  }

  private def signal(name: String): Unit =
    new ProcessBuilder("kill", s"-$name", ProcessHandle.current().pid().toString).start().waitFor()
}
