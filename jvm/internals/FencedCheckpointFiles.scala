package org.apache.spark.barograph

import java.io.FileNotFoundException
import java.nio.file.NoSuchFileException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, FSDataOutputStream, Path}

import org.apache.spark.SparkEnv
import org.apache.spark.barograph.lease.{Lease, LeaseFiles, Leases, LocalLeaseFiles, Owner, RemoteLeaseFiles}
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CheckpointFileManager, FileContextBasedCheckpointFileManager}

/**
 * The files of checkpoints, written by one driver only: the start of a query takes the checkpoint's lease, and every
 * file is made behind that lease's fence and then moved to its place. Spark writes all its logs through this class, the
 * asynchronous ones too. Executors have no lease and write as usual: names of state files are never used twice (format
 * 2), and only the driver's log says which of them count.
 */
class FencedCheckpointFiles private (path: Path, conf: Configuration, kind: FileSystemKind)
  extends FileContextBasedCheckpointFileManager(kind.known(path), conf) {

  /** Spark's own way to make it, by reflection: an error here would reach the user wrapped in others. */
  def this(path: Path, conf: Configuration) = this(path, conf, FileSystemKind.of(path, conf))

  /** The operations for leases and fenced files, on the checkpoint's file system. */
  protected def leaseFiles: LeaseFiles =
    if (kind.scheme == "file") LocalLeaseFiles else new RemoteLeaseFiles(fc)

  private lazy val files = leaseFiles

  override def createCheckpointDirectory(): Path = {
    kind.refusal(path).foreach(why => throw new IllegalArgumentException(why))
    val root = super.createCheckpointDirectory()
    val patienceMs = conf.getLong(FencedCheckpointFiles.Patience, FencedCheckpointFiles.DefaultPatienceMs)
    Leases.ensure(root, FencedCheckpointFiles.owner, files, patienceMs)
    root
  }

  override def createAtomic(
      path: Path, overwriteIfPossible: Boolean): CheckpointFileManager.CancellableFSDataOutputStream =
    leaseOver(path) match {
      case Some(lease) =>
        new CheckpointFileManager.RenameBasedFSDataOutputStream(this, path, lease.temporary(), overwriteIfPossible)
      case None => super.createAtomic(path, overwriteIfPossible)
    }

  override def createTempFile(path: Path): FSDataOutputStream = leaseOver(path) match {
    case Some(lease) => new FSDataOutputStream(new java.io.BufferedOutputStream(behind(lease)(files.open(path))), null)
    case None => super.createTempFile(path)
  }

  override def renameTempFile(from: Path, to: Path, overwriteIfPossible: Boolean): Unit = leaseOver(from) match {
    case Some(lease) =>
      if (!overwriteIfPossible && files.exists(to)) throw new FileAlreadyExistsException(s"$to exists already")
      // Of a file that was written without this class; it would not fit.
      files.delete(checksumOf(to))
      behind(lease)(files.move(from, to))
    case None => super.renameTempFile(from, to, overwriteIfPossible)
  }

  /** An entry of a log goes away by way of the fence too: an undo must not remove what the next owner has written. */
  override def delete(path: Path): Unit = leaseOver(path) match {
    case Some(lease) if path.getName.forall(_.isDigit) && files.exists(path) =>
      val away = lease.temporary()
      behind(lease)(files.move(path, away))
      files.delete(away)
      files.delete(checksumOf(path))
    case _ => super.delete(path)
  }

  private def leaseOver(path: Path): Option[Lease] = Leases.over(fc.makeQualified(path))

  private def checksumOf(path: Path) = new Path(path.getParent, s".${path.getName}.crc")

  private def behind[T](lease: Lease)(work: => T): T =
    try work
    catch { case e @ (_: FileNotFoundException | _: NoSuchFileException) => throw if (lease.stands) e else lease.lost }
}

object FencedCheckpointFiles {
  private val Patience = "spark.barograph.leasePatienceMs"
  private val DefaultPatienceMs = 10000L

  private def owner: Owner = {
    val conf = SparkEnv.get.conf
    Owner.here(conf.getAppId, conf.get("spark.app.name", "without a name"))
  }
}

/** isKnown: whether Hadoop has the interface for this scheme that can rename atomically. */
private final case class FileSystemKind(scheme: String, isKnown: Boolean) {
  /** A path for which Hadoop gives that interface. No file of an unknown scheme can be reached by another's. */
  def known(path: Path): Path = if (isKnown) path else new Path("file:///")

  /** Why no query may have its checkpoint there; None if it may. */
  def refusal(path: Path): Option[String] = Option.unless(FileSystemKind.Atomic(scheme)) {
    val otherwise = if (isKnown) "FileContextBasedCheckpointFileManager" else "FileSystemBasedCheckpointFileManager"
    s"the checkpoint $path is on a file system ($scheme) that is not known to rename atomically, so that two drivers " +
      "could use it at once: put it on a local disk or HDFS, or set " +
      "spark.sql.streaming.checkpointFileManagerClass to " +
      s"org.apache.spark.sql.execution.streaming.checkpointing.$otherwise to run without a lease"
  }
}

private object FileSystemKind {
  private val Atomic = Set("file", "hdfs", "viewfs")

  def of(path: Path, conf: Configuration): FileSystemKind = {
    val scheme = Option(path.toUri.getScheme).getOrElse(FileSystem.getDefaultUri(conf).getScheme)
    FileSystemKind(scheme, conf.get(s"fs.AbstractFileSystem.$scheme.impl") != null)
  }
}
