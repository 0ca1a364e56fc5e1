package org.apache.spark.barograph.lease

import java.io.OutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, NoSuchFileException, Paths, StandardCopyOption, StandardOpenOption}
import java.nio.file.attribute.{BasicFileAttributes, FileTime}
import java.util.{Comparator, EnumSet}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.fs.{
  CreateFlag, FileAlreadyExistsException, FileContext, Options, Path}
import org.apache.hadoop.fs.permission.FsPermission

/**
 * The operations on a checkpoint's files that a lease needs, each of which happens whole or not at all. Paths are
 * qualified. A missing file or folder is a FileNotFoundException or a NoSuchFileException.
 */
trait LeaseFiles {
  /** Names in a folder; none if there is no such folder. */
  def list(folder: Path): Seq[String]

  def exists(path: Path): Boolean

  /** Also makes the folders above it. */
  def makeFolder(path: Path): Unit

  /** False if the file exists already. */
  def createNew(file: Path, text: String): Boolean

  def read(file: Path): String

  /** It changes with each renewal, and means nothing else. */
  def stamp(file: Path): Long

  /** Needs no room on the disk. */
  def renew(file: Path): Unit

  /** A new file in a folder that exists; the folder is never made. */
  def open(file: Path): OutputStream

  /** A file or a folder with all that is in it. The target must not be an existing folder. */
  def move(from: Path, to: Path): Unit

  /** With all that is in it; nothing if there is none. */
  def delete(path: Path): Unit
}

/**
 * Files of the local disk, and what is mounted like one. Not by Hadoop: its local file system makes missing folders,
 * copies what it cannot rename, and looks first whether a file exists and makes it then.
 */
object LocalLeaseFiles extends LeaseFiles {
  override def list(folder: Path): Seq[String] =
    try Using.resource(Files.list(at(folder)))(_.iterator.asScala.map(_.getFileName.toString).toList)
    catch { case _: NoSuchFileException => Nil }

  /** What cannot be seen is not taken for missing: a fence that stands must be moved away, or the error be raised. */
  override def exists(path: Path): Boolean =
    try { Files.readAttributes(at(path), classOf[BasicFileAttributes]); true }
    catch { case _: NoSuchFileException => false }

  override def makeFolder(path: Path): Unit = Files.createDirectories(at(path))

  override def createNew(file: Path, text: String): Boolean =
    try { Files.write(at(file), text.getBytes(UTF_8), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE); true }
    catch { case _: java.nio.file.FileAlreadyExistsException => false }

  override def read(file: Path): String = Files.readString(at(file))

  override def stamp(file: Path): Long = Files.getLastModifiedTime(at(file)).toMillis

  override def renew(file: Path): Unit = Files.setLastModifiedTime(at(file), FileTime.fromMillis(stamp(file) + 1000))

  override def open(file: Path): OutputStream = Files.newOutputStream(at(file))

  override def move(from: Path, to: Path): Unit = Files.move(at(from), at(to), StandardCopyOption.ATOMIC_MOVE)

  override def delete(path: Path): Unit =
    try Using.resource(Files.walk(at(path)))(_.sorted(Comparator.reverseOrder()).iterator.asScala.foreach(
      Files.deleteIfExists(_)))
    catch { case _: NoSuchFileException => }

  private def at(path: Path) = Paths.get(path.toUri.getPath)
}

/** Files of a distributed file system whose server renames and creates atomically, as that of HDFS does. */
class RemoteLeaseFiles(files: FileContext) extends LeaseFiles {
  override def list(folder: Path): Seq[String] =
    if (exists(folder)) files.util.listStatus(folder).toSeq.map(_.getPath.getName) else Nil

  override def exists(path: Path): Boolean = files.util.exists(path)

  override def makeFolder(path: Path): Unit = files.mkdir(path, FsPermission.getDirDefault, true)

  override def createNew(file: Path, text: String): Boolean =
    try {
      Using.resource(files.create(file, EnumSet.of(CreateFlag.CREATE)))(_.write(text.getBytes(UTF_8)))
      true
    } catch { case _: FileAlreadyExistsException => false }

  override def read(file: Path): String =
    Using.resource(files.open(file))(in => new String(in.readAllBytes(), UTF_8))

  override def stamp(file: Path): Long = files.getFileStatus(file).getModificationTime

  override def renew(file: Path): Unit = files.setTimes(file, stamp(file) + 1000, -1)

  override def open(file: Path): OutputStream = files.create(
    file, EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE),
    Options.CreateOpts.checksumParam(Options.ChecksumOpt.createDisabled()))

  override def move(from: Path, to: Path): Unit = files.rename(from, to, Options.Rename.OVERWRITE)

  override def delete(path: Path): Unit = if (exists(path)) files.delete(path, true)
}
